"""The form in which the rules see a failure's text: one spelling, and no advice.

Lower case, `_` and `-` as spaces, camel case taken apart, no quotes, links or tags, so that
`insufficient_quota`, `InsufficientQuota` and "Insufficient quota" are one case. Advice goes first:
"reduce the length of the messages" or "add a payment method" stand in messages about rates, and
would be read as limits of tokens and money.
"""

import re
import unicodedata

_MAX_HEAD = 12_288
_MAX_TAIL = 4_096
"""How much of a text the patterns see: an error says what it is at its beginning or its end."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LINK = re.compile(r"https?://[^\s\"'<>)]+")
_TAG = re.compile(r"<[/!a-zA-Z][^<>]{0,300}>")
_QUOTES = re.compile(r"[`\"“”\u2018\u2019*\\]|(?<!\w)'|'(?!\w)")

_ECHO = re.compile(
    r"((?:invalid|unrecogni[sz]ed|unexpected|unsupported|malformed|illegal|unknown|expected)\b"
    r"(?:(?!upstream|provider|server|response|reply|answer|error)[^'\"“|{}\n]){0,60}"
    r"\b(?:value|content|input|text|string|type|argument|literal|got|received)\b"
    r"(?:(?!upstream|provider|server|response|reply|answer|error)[^'\"“|{}\n]){0,40}"
    r"[:=,]? ?)"
    r"(?:'(?=[^\s'|]{1,40}\s[^'|]{0,80}\s)[^'|\n]{1,4000}'"
    r"|[\"“](?=[^\s\"”|]{1,40}\s[^\"”|]{0,80}\s)[^\"”|\n]{1,4000}[\"”])",
    re.IGNORECASE,
)
"""What a complaint about a value quotes, if it is a sentence: it was written by who asked."""

_ACCENTS = re.compile("[\u0300-\u036f]")
_TRADITIONAL = (
    "額餘儲請過頻繁賬帳戶費計劃點數達訂閱權無長輸內對話應務錯誤載負後試鐘時間個線聯絡連斷續購買盡檢測審違規證認鑰碼參"
    "為開啟專區資積級將處體視讀寫語詞總從並單當變係斂佔據"
)
_SIMPLIFIED = (
    "额余储请过频繁账账户费计划点数达订阅权无长输内对话应务错误载负后试钟时间个线联络连断续购买尽检测审违规证认钥码参"
    "为开启专区资积级将处体视读写语词总从并单当变系敛占据"
)
_LETTERS = {"ß": "ss", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "\u0131": "i"}
_SIMPLER = {
    **{ord(one): other for one, other in zip(_TRADITIONAL, _SIMPLIFIED, strict=True)},
    **{ord(one): other for one, other in _LETTERS.items()},
}
"""To the simplified characters of the rules, and letters that are no accented ones."""

_ADVICE_BEGINS = (
    *("reduce the ", "reduce your ", "decrease ", "or fewer ", "or lower "),
    *("consider ", "consult "),
    *("try using ", "try loading ", "try to load ", "try a different ", "try a shorter "),
    *("refer to ", "see the ", "view your ", "review our ", "learn more"),
    *("visit ", "go to ", "go here"),
    *("check your plan", "check your billing", "add your own", "add a payment", "add credits"),
    *("add more credits", "contact our", "contact your", "contact us", "contact sales"),
    *("contact support", "contact azure", "for details", "for more details", "for information"),
    *("for more information", "upgrade to", "upgrade your", "upgrade for ", "to increase"),
    *("further increase", "submit a quota", "request a quota", "request a rate", "to continue"),
    *(
        "no credits were ",
        "purchase additional",
        "buy additional",
        "add funds",
        "subscribe to ",
        "sign up",
        "need more tokens",
        "you may also",
    ),
    "if you ",
    *("enable '", "received model group", "available model group"),
)
_ADVICE = re.compile(
    rf"(?:please |or |also |you can |you may )?(?:{'|'.join(_ADVICE_BEGINS)}|add \d+ credits)"
    r"[^.;\n。|]*"
)


def words(text: str) -> str:
    """The text as the rules see it, at most 16,384 characters of it."""
    return _squeezed(_ADVICE.sub(" ", _spelled(text)))


def with_advice(text: str) -> str:
    """The same with its advice."""
    return _squeezed(_spelled(text))


def plainer(text: str) -> str:
    """Without accents, full-width forms and traditional characters."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    plain = unicodedata.normalize("NFC", _ACCENTS.sub("", apart)).translate(_SIMPLER)
    return plain[: _MAX_HEAD + _MAX_TAIL]


def _spelled(text: str) -> str:
    if len(text) > _MAX_HEAD + _MAX_TAIL:
        text = f"{text[:_MAX_HEAD]} | {text[-_MAX_TAIL:]}"
    text = _ECHO.sub(r"\1", plainer(text).replace("\\n", "\n"))
    text = _THOUSANDS.sub("", text)
    text = _CAMEL.sub(" ", _TAG.sub(" ", _LINK.sub(_link_words, text)))
    return _QUOTES.sub("", text.replace("_", " ").replace("-", " ")).lower()


def _link_words(link: re.Match[str]) -> str:
    """DashScope says in the anchor of a link alone that a quota is of tokens per minute."""
    return " | #token limit | " if link[0].endswith("#token-limit") else " "


def _squeezed(text: str) -> str:
    return " ".join(text.split())
