"""Why something that would be accepted may not help, in English and Chinese.

Turn resources and refusals carry the same list of actions, so its sentences are told here.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from app.http.languages import Language, Words
from app.turn.actions import Action
from app.turn.retry_advice import Remedy

_CAUTIONS: Mapping[str | None, Words] = {
    "unlikely_to_help": {
        "en": "A plain retry is unlikely to help. {remedies} would.",
        "zh": "直接重试很可能无济于事。{remedies}会有帮助。",
    },
    "after_top_up": {
        "en": "A retry will probably be refused again until the allowance is raised.",
        "zh": "在补充额度之前，重试很可能再次被拒绝。",
    },
    "needs_operator": {
        "en": "A retry will probably fail again until someone who looks after this service has "
        "changed its settings.",
        "zh": "在服务管理员调整设置之前，重试很可能再次失败。",
    },
    "not_before": {
        "en": "A retry before {time} will probably be refused.",
        "zh": "在 {time} 之前重试很可能被拒绝。",
    },
    "limit_reached": {
        "en": "Without a higher limit the turn pauses again at once.",
        "zh": "若不提高上限，本轮会立即再次暂停。",
    },
}
_UNTIL_A_KNOWN_TIME: Words = {
    "en": "A retry before {time} will probably be refused, unless the allowance is raised.",
    "zh": "在 {time} 之前重试很可能被拒绝，除非补充额度。",
}
_NOTHING_AT_HAND: Words = {
    "en": "A plain retry is unlikely to help.",
    "zh": "直接重试很可能无济于事。",
}
_REMEDIES: Mapping[Remedy, Words] = {
    "shorter_history": {"en": "a shorter history", "zh": "缩短历史记录"},
    "shorter_answer": {"en": "a shorter answer", "zh": "要求更短的回答"},
    "higher_output_limit": {"en": "a higher limit for the answer", "zh": "提高回答的长度上限"},
    "other_model": {"en": "a model that takes more", "zh": "换用容量更大的模型"},
    "top_up": {"en": "a higher allowance", "zh": "补充额度"},
    "configuration": {"en": "other settings", "zh": "调整设置"},
    "higher_limit": {"en": "a higher limit", "zh": "提高上限"},
}


def action_sentence(action: Action, language: Language) -> str | None:
    """What is said beside the action; `None` where it helps, or is refused anyway.

    A time is given with its day: the sentence does not say when it was told.
    """
    words = _CAUTIONS.get(action.reason)
    if words is None:
        return None
    if action.reason == "after_top_up" and action.helps_from is not None:
        words = _UNTIL_A_KNOWN_TIME
    if action.reason == "unlikely_to_help" and not action.helps:
        words = _NOTHING_AT_HAND
    time = "" if action.helps_from is None else _day_and_time(action.helps_from)
    return words[language].format(time=time, remedies=_joined(action.helps, language))


def _day_and_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _joined(remedies: Sequence[Remedy], language: Language) -> str:
    names = [_REMEDIES[remedy][language] for remedy in remedies]
    if language == "zh":
        return "、".join(names[:-1]) + ("或" if names[:-1] else "") + "".join(names[-1:])
    listed = ", ".join(names[:-1]) + (" or " if names[:-1] else "") + "".join(names[-1:])
    return listed[:1].upper() + listed[1:]
