"""What is said to people about a turn: safe sentences, in English and Chinese.

Nothing a provider said is in them. A sentence is a title and an explanation; each is complete.
"""

from collections.abc import Mapping
from datetime import UTC, timedelta

from app.http.languages import Language, Words
from app.turn.failures import FailureRecord, FailureType, TokenLimitPhase
from app.turn.state import Turn
from app.turn.states import Failed, LimitReached, Paused, Ready, WaitingForCalls, WaitingForUser
from app.turn.status import PauseCause

_BY_TYPE: Mapping[FailureType, Words] = {
    FailureType.QUOTA_EXCEEDED: {
        "en": "The usage allowance for this model is used up. Someone who manages the account has "
        "to raise the allowance; until then a retry will probably be refused again.",
        "zh": "该模型的可用额度已用完。需要由账户管理员补充额度；在此之前重试很可能再次被拒绝。",
    },
    FailureType.RATE_LIMITED: {
        "en": "Too many requests at the moment. Try again in a little while.",
        "zh": "目前请求过多。请稍后重试。",
    },
    FailureType.OVERLOADED: {
        "en": "The model is busy. Try again in a little while.",
        "zh": "模型繁忙。请稍后重试。",
    },
    FailureType.UNAVAILABLE: {
        "en": "The model cannot be reached. This is a problem on the way to the model, "
        "not with your request.",
        "zh": "暂时无法连接到模型。问题出在与模型的连接上，与你的请求无关。",
    },
}

_TIME = "%H:%M UTC"
_NEAR = timedelta(hours=12)
"""Within it a time of day needs no day."""
_UNTIL: Mapping[FailureType, Words] = {
    FailureType.QUOTA_EXCEEDED: {
        "en": "The usage allowance for this model is used up. The model takes requests again at "
        "{time}, or when someone who manages the account raises the allowance.",
        "zh": "该模型的可用额度已用完。模型将于 {time} 恢复接收请求，"
        "账户管理员也可以提前补充额度。",
    },
    FailureType.RATE_LIMITED: {
        "en": "Too many requests at the moment. The model takes requests again at {time}.",
        "zh": "目前请求过多。模型将于 {time} 恢复接收请求。",
    },
    FailureType.OVERLOADED: {
        "en": "The model is busy. It takes requests again at {time}.",
        "zh": "模型繁忙。将于 {time} 恢复接收请求。",
    },
    FailureType.UNAVAILABLE: {
        "en": "The model cannot be reached. It is expected back at {time}.",
        "zh": "暂时无法连接到模型。预计于 {time} 恢复。",
    },
}
"""For a time that the provider has stated."""

_NOT_REPEATABLE: Mapping[FailureType, Words] = {
    FailureType.RATE_LIMITED: {
        "en": "This request is larger than the model takes at once. A plain retry sends the same "
        "text and is unlikely to help.",
        "zh": "本次请求超出了模型一次可接受的大小。直接重试会发送同样的内容，很可能无济于事。",
    },
    FailureType.UNAVAILABLE: {
        "en": "The model cannot be used at the moment. Someone who looks after this service has "
        "to change its settings first; until then a retry will probably fail again.",
        "zh": "目前无法使用该模型。需要由服务管理员先调整设置；在此之前重试很可能再次失败。",
    },
}
"""For what stays as it is until somebody does something about it: a key, a size."""

_BY_PHASE: Mapping[TokenLimitPhase, Words] = {
    TokenLimitPhase.INPUT_CONTEXT: {
        "en": "This conversation is too long for the model. A plain retry sends the same text "
        "and is unlikely to help.",
        "zh": "对话内容超出了模型可读取的长度。直接重试会发送同样的内容，很可能无济于事。",
    },
    TokenLimitPhase.OUTPUT: {
        "en": "The answer was longer than the model may write. The part that was written is kept.",
        "zh": "回答超出了模型可输出的长度。已写出的部分已保留。",
    },
    TokenLimitPhase.TOTAL_CONTEXT: {
        "en": "This conversation and its answer together are too long for the model. Shorten the "
        "history or ask for a shorter answer.",
        "zh": "对话内容与回答合计超出了模型的长度上限。请缩短历史记录，或要求更短的回答。",
    },
    TokenLimitPhase.UNKNOWN: {
        "en": "This request is too long for the model. Shorten the history or ask for a shorter "
        "answer.",
        "zh": "本次请求超出了模型的长度上限。请缩短历史记录，或要求更短的回答。",
    },
}

_FAILED: Mapping[str, Words] = {
    "request_refused": {
        "en": "The model does not take this request. Change it and send it again.",
        "zh": "模型不接受此请求。请修改后重新发送。",
    },
    "model_failed": {
        "en": "The model failed, and this agent does not wait for it. Send the message again.",
        "zh": "模型调用失败，而该智能体不会等待其恢复。请重新发送消息。",
    },
    "output_invalid": {
        "en": "The answer did not have the form that this agent promises, also when it was asked "
        "for once more. Send the message again, or put it another way.",
        "zh": "回答不符合该智能体约定的格式，再次要求后仍不符合。请重新发送消息，或换一种说法。",
    },
    "tool_failed": {
        "en": "A tool failed that the turn cannot do without.",
        "zh": "本轮必需的一个工具执行失败。",
    },
    "policy_failed": {
        "en": "The turn ended because the rules for its tools could not be asked. Nothing was done "
        "by the tool. Send the message again.",
        "zh": "由于无法查询工具的使用规则，本轮已结束。该工具未执行任何操作。请重新发送消息。",
    },
    "approval_loop": {
        "en": "The turn ended because a tool asked again for an approval that it had.",
        "zh": "由于一个工具重复请求已经获得的批准，本轮已结束。",
    },
    "wait_expired": {
        "en": "The turn ended because nobody answered in time. Send the message again.",
        "zh": "由于无人在限定时间内答复，本轮已结束。请重新发送消息。",
    },
    "hook_failed": {
        "en": "The turn ended because code of its agent failed. Send the message again.",
        "zh": "由于智能体自身的代码出错，本轮已结束。请重新发送消息。",
    },
    "internal_error": {
        "en": "The turn ended because of an error on our side. Send the message again.",
        "zh": "由于我方的错误，本轮已结束。请重新发送消息。",
    },
}

_PAUSED: Mapping[PauseCause, Words] = {
    PauseCause.PERSON: {
        "en": "The turn is paused. Resume goes on from where it stands.",
        "zh": "本轮已暂停。继续后将从当前位置接着进行。",
    },
    PauseCause.LIMIT: {
        "en": "The turn reached a limit of its agent and is paused. An operator can raise the "
        "limit and resume it.",
        "zh": "本轮达到了智能体的上限，已暂停。运维人员可以提高上限并继续。",
    },
    PauseCause.CRASH: {
        "en": "The process that ran the turn was lost, and the turn is paused for somebody to "
        "decide. Resume goes on from where it stands, by the rule of each open call.",
        "zh": "运行本轮的进程已丢失，本轮已暂停，等待人工决定。继续后将从当前位置接着进行，"
        "未完成的调用按各自规则处理。",
    },
    PauseCause.CRASH_LOOP: {
        "en": "The turn is paused because the processes that ran it were lost three times, and "
        "nothing new came of it. Somebody should look at why before it is resumed.",
        "zh": "运行本轮的进程已连续三次丢失，且没有任何新进展，本轮已暂停。继续之前应先查明原因。",
    },
}

_HELD: Words = {
    "en": "The turn is on hold. It begins when it is told to run.",
    "zh": "本轮已暂缓，尚未开始。收到运行指令后才会开始。",
}

_ASKED: Words = {
    "en": "The agent asks you something. The turn goes on with your answer.",
    "zh": "智能体向你提出了一个问题。收到你的回答后，本轮将继续。",
}

_WAITS: Mapping[str, Words] = {
    "approval": {
        "en": "A tool waits for an approval. Nothing is done before somebody approves or rejects "
        "what it wants to do.",
        "zh": "一个工具正在等待批准。在有人批准或拒绝之前，不会执行任何操作。",
    },
    "form": _ASKED,
    "external": {
        "en": "A tool outside is at work. The turn goes on with its result.",
        "zh": "一个外部工具正在处理。收到其结果后，本轮将继续。",
    },
}

_LIMIT: Words = {
    "en": "The turn reached a limit of its agent and ended.",
    "zh": "本轮达到了智能体的上限，已结束。",
}


def sentence_for(turn: Turn, language: Language) -> str | None:
    """What a person is told about the turn; `None` when there is nothing to explain."""
    if turn.current_failure is not None:
        return failure_sentence(turn.current_failure, language)
    match turn.state:
        case Failed(reason=reason):
            return _FAILED.get(reason, _FAILED["internal_error"])[language]
        case LimitReached():
            return _LIMIT[language]
        case Ready(held=True):
            return _HELD[language]
        case WaitingForUser():
            return _ASKED[language]
        case WaitingForCalls() as state if state.first.wait is not None:
            return _WAITS[state.first.wait.kind][language]
        case Paused(cause=cause):
            return _PAUSED[cause][language]
        case _:
            return None


def failure_sentence(record: FailureRecord, language: Language) -> str:
    """The sentence for a failure; a time that the provider has stated is given in UTC."""
    failure = record.failure
    if failure.type is FailureType.TOKEN_LIMIT_EXCEEDED:
        return _BY_PHASE[failure.token_limit_phase or TokenLimitPhase.UNKNOWN][language]
    if not failure.retryable and failure.type in _NOT_REPEATABLE:
        return _NOT_REPEATABLE[failure.type][language]
    if record.retry_at is not None:
        is_near = record.retry_at - record.occurred_at < _NEAR
        time = record.retry_at.astimezone(UTC).strftime(_TIME if is_near else f"%Y-%m-%d {_TIME}")
        return _UNTIL[failure.type][language].format(time=time)
    return _BY_TYPE[failure.type][language]
