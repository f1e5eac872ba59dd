"""Errors by number, where a provider numbers them.

A number means nothing without whose it is, so each table has a shape by which its bodies are
known: Zhipu's `{code, message}`, MiniMax's `base_resp`, Baidu's `error_code` with `error_msg`,
Cloudflare's `errors` with `success`, iFlytek's `code` with `sid`, SiliconFlow's `code` with `data`.
A provider that the evidence names decides without a shape. Numbers that only say "a parameter is
wrong" are left out: their words say which, and a context window may be one.
"""

import re
from collections.abc import Iterator, Mapping

from app.providers.failure_evidence import Findings
from app.providers.failure_verdicts import (
    BUSY,
    DENIED,
    DOWN,
    INPUT,
    QUOTA,
    RATE,
    REFUSED,
    TOTAL,
    Verdict,
)
from app.providers.wire_json import JsonObject, as_array, as_object, is_object


def _table(rows: Mapping[Verdict, str]) -> dict[int, Verdict]:
    return {int(number): verdict for verdict, numbers in rows.items() for number in numbers.split()}


_ZHIPU = _table(
    {
        DENIED: "1000 1001 1002 1003 1004 1005 1110 1111 1112 1120 1121 1211 1220 1221 1222 1311"
        " 1315",
        QUOTA: "1113 1304 1308 1309 1310 1314 1316 1317 1318 1319 1320 1321",
        DOWN: "1200 1230 1234",
        INPUT: "1261",
        REFUSED: "1301",
        RATE: "1302 1303 1313",
        BUSY: "1305 1312",
    }
)
"""docs.bigmodel.cn, "API error codes"; 1113 and 1308 to 1321 are sent as 429."""

_MINIMAX = _table(
    {
        DOWN: "1000 1001 1013 1024 1033",
        RATE: "1002 1039 1041 2045",
        DENIED: "1004 2049 2061",
        QUOTA: "1008 2056",
        REFUSED: "1026 1027 1042 1043",
    }
)
"""platform.minimaxi.com, "error codes"; 1039 is tokens per minute. All come with a 200."""

_QIANFAN = _table(
    {
        DOWN: "1 2 336000 336200 282000",
        DENIED: "3 6 13 14 15 100 101 110 111 336004 336005",
        RATE: "4 18 336501 336502",
        QUOTA: "17 19",
        BUSY: "336100",
        INPUT: "336007 336103",
    }
)
"""cloud.baidu.com, "error codes" of Qianfan v1 and of Baidu's AI platform; all come with a 200."""

_CLOUDFLARE = _table(
    {
        DENIED: "3023 3041 3042 5007 5016 5018 5019",
        QUOTA: "3036 4006",
        BUSY: "3040",
        DOWN: "3007 3008",
        INPUT: "3006",
        TOTAL: "5021",
        REFUSED: "3003 5004 5006",
    }
)
"""developers.cloudflare.com, "Workers AI errors"; 4006 is seen in public reports."""

_IFLYTEK = _table(
    {
        BUSY: "10008 10110 10223",
        RATE: "10006 10007 11202 11203",
        QUOTA: "11201",
        DOWN: "10009 10010 10011 10012 10222",
        REFUSED: "10003 10004 10005 10013 10014 10019 10163",
        DENIED: "10015 10016 10017 10018",
        INPUT: "10907",
    }
)
"""xfyun.cn, "Spark web API"; 11200 is left to its words, which tell a grant from a used-up pack."""

_SILICONFLOW = _table(
    {
        DENIED: "20012 30003",
        QUOTA: "30001 30011",
        BUSY: "50501 50502 50503 50504 50505 50508 50603",
    }
)
"""docs.siliconflow.cn and public reports."""

_BY_PROVIDER = {
    "zhipu": _ZHIPU,
    "minimax": _MINIMAX,
    "qianfan": _QIANFAN,
    "cloudflare-ai": _CLOUDFLARE,
    "iflytek": _IFLYTEK,
    "siliconflow": _SILICONFLOW,
}

_KNOWN_BY = tuple(
    (re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])"), table)
    for names, table in (
        ("zhipu(?:ai)?|bigmodel|glm|zai|z\\.ai", "zhipu"),
        ("minimaxi?", "minimax"),
        ("qianfan|baidubce|baidu|wenxin", "qianfan"),
        ("cloudflare-ai|workers-ai|api\\.cloudflare", "cloudflare-ai"),
        ("iflytek|xfyun|xf-yun", "iflytek"),
        ("siliconflow", "siliconflow"),
    )
)
"""Names that operators give these providers, and words in their addresses."""


def by_number(found: Findings) -> tuple[str, Verdict] | None:
    """The rule and verdict of the first number that its provider's table knows."""
    for provider, number in _numbers(found):
        verdict = _BY_PROVIDER[provider].get(number)
        if verdict is not None:
            return f"{provider}-{number}", verdict
    return None


def _numbers(found: Findings) -> Iterator[tuple[str, int]]:
    provider = _numbering(found.provider or "")
    for value in found.objects:
        yield from _by_shape(value)
        if provider:
            yield from _number(provider, value.get("code", value.get("error_code")))


def _numbering(provider: str) -> str | None:
    """Whose table it is, by a configured name or an address: `glm`, `https://api.z.ai/v1`."""
    said = provider.lower()
    return next((table for names, table in _KNOWN_BY if names.search(said)), None)


def _by_shape(value: JsonObject) -> Iterator[tuple[str, int]]:
    yield from _number("minimax", as_object(value.get("base_resp")).get("status_code"))
    code = value.get("code")
    if "message" in value and value.keys() <= {"code", "message"} and isinstance(code, str):
        yield from _number("zhipu", code)
    if "error_msg" in value:
        yield from _number("qianfan", value.get("error_code"))
    if "success" in value:
        for entry in as_array(value.get("errors")):
            yield from _number("cloudflare-ai", as_object(entry).get("code"))
    if {"message", "sid"} <= value.keys():
        yield from _number("iflytek", code)
    if {"message", "data"} <= value.keys() and not is_object(value["data"]):
        yield from _number("siliconflow", code)


def _number(provider: str, code: object) -> Iterator[tuple[str, int]]:
    if isinstance(code, int) and not isinstance(code, bool):
        yield provider, code
    elif isinstance(code, str) and code.isascii() and code.isdigit() and len(code) <= 6:
        yield provider, int(code)
