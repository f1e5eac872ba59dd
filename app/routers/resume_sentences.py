"""What people are told of a resume point, in English and Chinese: one sentence for a tooltip."""

from collections.abc import Mapping
from typing import TypeAlias

from app.http.languages import Language
from app.turn.resume_point import Kind, NotResumable, Reason, ResumePoint

_Words: TypeAlias = Mapping[Language, str]

_KINDS: Mapping[Kind, _Words] = {
    "CALL_MODEL": {
        "en": "Resume goes on with the next model call.",
        "zh": "继续后将进行下一次模型调用。",
    },
    "RECOVER_TOOLS": {
        "en": "Resume closes {n} open calls by their rules, then asks the model again.",
        "zh": "继续后将按各自规则处理 {n} 个未完成的调用，然后再次请求模型。",
    },
    "RETRY_RESPONSE": {
        "en": "Resume asks the model to write the answer again from the start.",
        "zh": "继续后将请模型从头重新作答。",
    },
    "CONTINUE_RESPONSE": {
        "en": "Resume asks the model to go on where the text ends.",
        "zh": "继续后将请模型从文末接着写。",
    },
}
_ONE_CALL: _Words = {
    "en": "Resume closes 1 open call by its rule, then asks the model again.",
    "zh": "继续后将按规则处理 1 个未完成的调用，然后再次请求模型。",
}
_SOME_WAIT: _Words = {
    "en": "Resume goes on with the open calls, and waits for those that need somebody's answer.",
    "zh": "继续后将处理未完成的调用，并等待其中需要他人答复的调用。",
}
_OF_AN_UNKNOWN_END: _Words = {
    "en": "Cannot be resumed: the last answer did not end in a known way. "
    "Send a new message to go on.",
    "zh": "无法继续：上一个回答的结束方式未知。请发送新消息。",
}
_REASONS: Mapping[Reason, _Words] = {
    "completed": {
        "en": "Nothing to resume: the answer is complete.",
        "zh": "无需继续：回答已完成。",
    },
    "refused": {
        "en": "Cannot be resumed: the model declined to answer. Send a new message to go on.",
        "zh": "无法继续：模型拒绝作答。请发送新消息。",
    },
    "context_full": {
        "en": "Cannot be resumed: this conversation is too long for the model. Shorten it first.",
        "zh": "无法继续：对话内容超出了模型的长度上限。请先缩短。",
    },
    "unknown_stop": _OF_AN_UNKNOWN_END,
    "malformed": _OF_AN_UNKNOWN_END,
    "empty": {
        "en": "Nothing to resume: this conversation is empty.",
        "zh": "无需继续：对话为空。",
    },
    "running": {
        "en": "Nothing to resume: the turn is running.",
        "zh": "无需继续：本轮正在运行。",
    },
    "waiting": {
        "en": "Nothing to resume: the turn waits; see above for what.",
        "zh": "无需继续：本轮正在等待，原因见上。",
    },
}


def sentence_of(point: ResumePoint, language: Language) -> str:
    """What a resume would do, or why there is nothing to resume."""
    if isinstance(point, NotResumable):
        return _REASONS[point.reason][language]
    if any(call.rule == "wait" for call in point.unanswered):
        return _SOME_WAIT[language]
    number = len(point.unanswered)
    words = _ONE_CALL if number == 1 else _KINDS[point.kind]
    return words[language].format(n=number)
