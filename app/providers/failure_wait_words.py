# ruff: noqa: RUF001 - Cyrillic letters are meant
"""Waits that are written in words: "try again in 1m2.5s", "请在 30 秒后重试", "dans 30 secondes".

Texts come in the form of `failure_words`: lower case, without accents, `_` and `-` as spaces.
"""

import re
from collections.abc import Iterator

from app.providers.failure_words import plainer

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_SPAN = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?"
    r"(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_CLOCK = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)(?:\.\d{1,9})?")
_STATED = re.compile(
    r"(?:try again|retry|retrying|wait|reset|resets|available|back|allowed|lifted|expires?"
    r"|cooldown|replenished|renew(?:s|ed)|refresh(?:es|ed)?|restored|resumes?"
    r"|unblocked|regain|back ?off|pause|sleep|delay)"
    r"(?: (?:in|after|for|again|about|approximately|another|at least|access|time|within))*:? ~? ?"
    r"((?:\d{1,9}(?:\.\d{1,9})? ?(?:more |additional )?[a-z]{1,12},? ?(?:and )?){1,4}"
    r"|\d{1,3}:[0-5]\d:[0-5]\d)"
)
_STATED_BEHIND = re.compile(
    r"((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12},? ?(?:and )?){1,4})"
    r"(?:until (?:the |you |your |next )?(?:reset|retry|limit|can|request)|you (?:can|may)\b"
    r"|before (?:retry|trying|the next|sending|making|next))"
)
_MORE = re.compile(r"(?<=\d) ?(?:more|additional) ")
_AS_FIELD = re.compile(
    r"retry (?:after|delay)(?: seconds)?(?:[:=]| ?\{ ?seconds:) ?(\d{1,9}(?:\.\d{1,9})?)(?![\w.])"
)

_UNITS_ABROAD = {
    0.001: r"毫秒|ミリ秒|밀리초",
    1.0: r"秒钟?|초|sekund\w{0,2}|secondes?|segundos?|secondi|seconden|saniye|giay|detik"
    r"|секунд\w{0,2}|сек",
    60.0: r"分钟?|분|minut(?:en|es?|os?|i|y)?|dakika|phut|menit|минут\w{0,2}|мин",
    3_600.0: r"个?小时|时间|시간|stunden?|heures?|horas?|or[ae]|uur|uren|godzin\w{0,2}|saat|gio|jam"
    r"|час\w{0,2}",
    86_400.0: r"天|日|일|tag(?:en)?|jours?|dias?|giorn[io]|dagen|dzien|dni|gun|ngay|hari|дн\w{1,2}"
    r"|суток",
}
_ANY_UNIT = "|".join(plainer(units) for units in _UNITS_ABROAD.values())
_PART = rf"\d{{1,9}}(?:\.\d{{1,9}})? ?(?:{_ANY_UNIT})(?![a-zа-я])"
_SPAN_ABROAD = rf"(?:{_PART}[,、]? ?(?:und |et |y |e |en |i |и )?){{1,4}}"
_BEFORE = (
    r"reessa\w{1,6}|attend\w{1,6}|patient\w{1,5}|erneut|versuch\w{0,3}|wart\w{1,4}|intent\w{1,7}"
    r"|reintent\w{1,7}|esper\w{1,4}|tente|novamente|aguard\w{1,4}|riprov\w{1,4}|opnieuw|wacht"
    r"|sprobuj|poczekaj|tekrar|bekley\w{1,6}|thu lai|coba|tunggu|повтор\w{1,6}|попроб\w{1,6}"
    r"|подожд\w{1,4}|через|请|等待|重试|需要?|在|于|(?:剩余|冷却|等待|恢复)\w{0,6}|再试行|残り"
)
_BEHIND = (
    r"之?(?:后|内不)|以?后|待(?:って|ち|って)|経|お待ち|후|뒤|기다|erneut|wieder|opnieuw|ponown"
    r"|tekrar|sonra|novamente|lagi"
)
_STATED_ABROAD = re.compile(
    rf"(?:{_BEFORE})[^\d|]{{0,40}}?({_SPAN_ABROAD})|({_SPAN_ABROAD}).{{0,8}}?(?:{_BEHIND})"
)
_PARTS_ABROAD = tuple(
    (seconds, re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?) ?(?:{plainer(units)})(?![a-zа-я])"))
    for seconds, units in _UNITS_ABROAD.items()
)


def waits_in(text: str) -> Iterator[float]:
    """The waits a text states, in seconds, as they come; English ones first."""
    for stated in _STATED.findall(text):
        yield from seconds_of(_MORE.sub(" ", stated))
    for stated in _STATED_BEHIND.findall(text):
        yield from seconds_of(stated)
    for number in _AS_FIELD.findall(text):
        yield float(number)
    for before, behind in _STATED_ABROAD.findall(text):
        span = before or behind
        yield sum(
            float(number) * seconds
            for seconds, part in _PARTS_ABROAD
            for number in part.findall(span)
        )


def seconds_of(text: str) -> Iterator[float]:
    """`6ms`, `1m30.5s`, `8 hours 24 minutes`, `1.57s`, `12:33:12`; nothing for other texts."""
    clock = _CLOCK.fullmatch(text.strip())
    if clock:
        hours, minutes, seconds = (int(part) for part in clock.groups())
        yield hours * 3_600 + minutes * 60 + seconds
        return
    parts = _SPAN.findall(text[:200])
    if parts:
        yield sum(float(number) * _unit_seconds(unit) for number, unit in parts)


def is_span(text: str) -> bool:
    """Whether the text is a span such as `20s` or `1m30s`, and nothing beside it."""
    return bool(text) and not _SPAN.sub("", _CLOCK.sub("", text)).strip()


def _unit_seconds(unit: str) -> float:
    return _UNIT_SECONDS["ms" if unit.startswith(("ms", "mil")) else unit[0]]
