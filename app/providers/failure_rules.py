r"""What the words of a failure mean, as a table read from top to bottom; the first match decides.

The order is the knowledge. Reasons that name one cause come first. Money and plans come before
rates, because an exhausted quota is also sent as 429; rates come before tokens, because "tokens
per minute" is a rate; capacity comes before bare statuses, because it is sent as 429, 500 and 503.

Patterns see lower-case words with `_` and `-` as spaces, codes and messages alike, so that
`insufficient_quota` and "Insufficient quota" are one case. They take linear time: no repetition
inside a repetition, gaps are bounded (`.{0,40}`).
"""

import re
from dataclasses import dataclass

from app.turn.failures import FailureType, TokenLimitPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a failure is. `type` is `None` for a request that is wrong or refused itself."""

    type: FailureType | None
    retryable: bool
    phase: TokenLimitPhase | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the table."""

    name: str
    verdict: Verdict
    pattern: re.Pattern[str]
    why: str
    """The reason, and where it was seen or is documented."""


QUOTA = Verdict(type=FailureType.QUOTA_EXCEEDED, retryable=False)
RATE = Verdict(type=FailureType.RATE_LIMITED, retryable=True)
RATE_TOO_BIG = Verdict(type=FailureType.RATE_LIMITED, retryable=False)
BUSY = Verdict(type=FailureType.OVERLOADED, retryable=True)
DOWN = Verdict(type=FailureType.UNAVAILABLE, retryable=True)
DENIED = Verdict(type=FailureType.UNAVAILABLE, retryable=False)
REFUSED = Verdict(type=None, retryable=False)
INPUT, OUTPUT, TOTAL, UNKNOWN = (
    Verdict(type=FailureType.TOKEN_LIMIT_EXCEEDED, retryable=False, phase=phase)
    for phase in (
        TokenLimitPhase.INPUT_CONTEXT,
        TokenLimitPhase.OUTPUT,
        TokenLimitPhase.TOTAL_CONTEXT,
        TokenLimitPhase.UNKNOWN,
    )
)


def _rule(name: str, verdict: Verdict, why: str, *alternatives: str) -> Rule:
    return Rule(name, verdict, re.compile("|".join(alternatives)), why)


_MONEY = r"balance|credits?|funds?|quota|额度|配额"
_MAX_TOKENS = r"max (?:completion |output |new )?tokens"

REASONS = (
    _rule(
        "tool-call-malformed",
        DOWN,
        "the model wrote a bad call, another attempt may not: Groq's error page, Gemini's stops",
        r"tool use failed",
        r"malformed function call",
    ),
    _rule(
        "capacity-reason",
        BUSY,
        "a reason that names capacity, whatever the status: Gemini, Volcengine, Groq flex",
        r"model capacity exhausted",
        r"server overloaded",
        r"\bcapacity exceeded",
        r"no capacity available",
    ),
    _rule(
        "calendar-window",
        QUOTA,
        "a day, a week or a month is a quota, not a rate: Gemini quotaId, Cloudflare, Qianfan",
        r"per ?(?:model ?)?(?:day|week|month)\b",
        r"\b(?:daily|weekly|monthly|day|hourly|session)\b.{0,30}(?:limit|allocation|quota)\b"
        r"(?! *:)",
        r"\d.hour usage limit",
        r"使用上限",
    ),
    _rule(
        "request-over-window",
        RATE_TOO_BIG,
        "one request bigger than the whole minute's bucket waits in vain: Groq, OpenAI TPM",
        r"request too large for .{0,200}per min",
    ),
    _rule(
        "rate-window",
        RATE,
        "a rolling window, though Google calls it a quota: Gemini quotaId, Vertex, Huawei",
        r"per ?(?:minute|min|second|sec)\b",
        r"/ ?min(?:ute)?\b",
        r"quota exceeded for (?:aiplatform|quota metric|metric)",
        r"\bthrottling",
        r"allocated quota exceeded",
    ),
)

MONEY = (
    _rule(
        "money",
        QUOTA,
        "only paying, a new plan or an owner's decision helps: OpenAI error codes, DeepSeek 402",
        r"\b(?:insufficient|no|out of|not enough|exceeds?|exceeded)\b(?: [\w']+){0,4} ?"
        rf"(?:{_MONEY})\b",
        rf"(?:{_MONEY})\b[^|.;]{{0,60}}(?:insufficient|exhausted|too low|not enough|exceeded"
        r"|depleted|used up|不足|用尽)",
        r"(?:usage|spending|budget|billing|total request|inference) limits?\b",
        r"(?:exceeded|crossed) budget",
        r"billing not active",
        r"overdue|arrearage|past due|good standing|suspended",
        r"(?:requires?|are required|more|available|purchase) credits|credits are required",
        r"free tier\b.{0,30}exhausted|free allocation|paid plan",
        r"can only afford|need a .{0,20}subscription",
        r"余额不足|欠费|额度不足|配额不足|超过配额|请充值",
    ),
)

RATES = (
    _rule(
        "rate",
        RATE,
        "asked too often: OpenAI rate_limit_exceeded, Anthropic rate_limit_error, Moonshot",
        r"rate ?limit",
        r"\b(?:rpm|tpm|qps|tps|qpm)\b",
        r"qps ?over ?flow",
        r"too many (?:requests|tokens, please wait)",
        r"requests? limit exceeded|requests? .{0,20}(?:limited|max request)",
        r"concurrency",
        r"限速|限流|速率|频率|并发|超限",
    ),
)

TOKENS = (
    _rule(
        "output-parameter",
        REFUSED,
        "a parameter the model does not take is no limit that was run into: OpenAI, Volcengine",
        rf"(?:unsupported|not supported|same time|greater than).{{0,60}}{_MAX_TOKENS}",
        rf"{_MAX_TOKENS}.{{0,80}}(?:not supported|at the same time|must be greater than)",
    ),
    _rule(
        "nothing-left-for-output",
        INPUT,
        "the prompt fills the window alone: DeepSeek and vLLM say 0 in the completion, or -186",
        r"\b0 in the completion",
        r"max tokens must be at least 1, got",
    ),
    _rule(
        "window-by-both",
        TOTAL,
        "prompt and answer together are too long: OpenAI, vLLM, TGI, SGLang wording",
        r"in the completion\)",
        rf"tokens?`? (?:\+|plus) .{{0,20}}{_MAX_TOKENS}",
        r"input and maximum output tokens|output tokens and your prompt",
        r"requested token count exceeds|token budget \d{1,12} exceeds",
        r"model token limit: \d{1,12} \(requested",
        rf"{_MAX_TOKENS}.{{0,20}} too large.{{0,40}}maximum context",
        r"\bmodel context window exceeded",
    ),
    _rule(
        "output-cap",
        OUTPUT,
        "more output asked for than the model gives: Anthropic, Cohere, DashScope, Volcengine",
        rf"{_MAX_TOKENS}`?'?.{{0,60}}"
        r"(?:too large|must be (?:<=|less)|valid range|should be \[|<=|非法"
        r"|above maximum|which is the maximum)",
        rf"(?:invalid|range of) {_MAX_TOKENS}",
        r"maximum (?:allowed )?(?:number of )?output(?: tokens)?\b",
        r"unable to complete request: max output tokens",
    ),
    _rule(
        "output-stop",
        OUTPUT,
        "a stop value says that the answer was cut at its cap",
        rf"(?:^|\| )(?:{_MAX_TOKENS}|length)$",
    ),
    _rule(
        "window",
        INPUT,
        "the prompt is longer than the window: OpenAI context_length_exceeded, llama.cpp"
        " exceed_context_size_error, Anthropic, Gemini, Bedrock, xAI",
        r"(?:prompt|input|inputs)`? (?:is |tokens? |are )?(?:too long|exceeds?)",
        r"context length (?:exceeded|is \d)|exceeds?\b.{0,60}\bcontext",
        r"exceed context size|context window exceeds",
        r"(?:input|prompt) (?:token count|tokens? limit|length)\b.{0,60}(?:exceeds?|should be)",
        r"maximum (?:prompt|context|model|sequence) length|max prompt tokens|\bn ctx\b",
        r"too many tokens: size limit|tokens too long|tokens limit reached|超长",
        r"exceeds? max(?:imum)? (?:length|message|input|context)|message size .{0,40}exceeds limit",
        r"must have less than \d{1,12} tokens|must be less than max seq len",
    ),
)

CAPACITY = (
    _rule(
        "capacity",
        BUSY,
        "the provider is out of capacity now: OpenAI 503, Anthropic 529, Gemini, Ollama, SGLang",
        r"overload|high demand|high traffic|slow down|too busy|(?:server|llm|model|system) busy",
        r"\bcapacity\b|no slots available|queue is full|pending requests|too many requests at",
        r"service unavailable exception|status name \| service unavail|service unavail\b",
        r"访问量过大|负载已饱和|繁忙",
    ),
)

ACCESS = (
    _rule(
        "access",
        DENIED,
        "key, permission, model or region: waiting alone does not help; OpenAI 401, 403, 404",
        r"(?:invalid|incorrect|expired|no) .{0,12}(?:api key|token\b|credentials)",
        r"authentication|auth ?failure|unauthorized|no ?auth|credentials",
        r"permission|access denied|not have access|illegal access|access terminated",
        r"unsupported country|location is not supported|not agreed|unusual traffic",
        r"model not found|does not exist|no endpoints found|no available channel|无可用渠道",
        r"more system memory|certificate verify failed",
        r"令牌(?:状态|已过期)",
    ),
)

REQUEST = (
    _rule(
        "policy",
        REFUSED,
        "the content was refused: OpenAI and Azure content_filter, DashScope, MiniMax, Moonshot",
        r"content (?:filter|management policy|exists risk|policy)|usage polic|flagged as",
        r"inappropriate content|inspection ?failed|high risk|safety|涉敏|敏感|违规|\bsensitive\b",
    ),
    _rule(
        "schema",
        REFUSED,
        "the request itself is malformed: OpenAI invalid_request_error, Anthropic, Zhipu, Qianfan",
        r"invalid schema|invalid (?:api )?param|invalid request|unsupported parameter|参数",
        r"bad request error|missing required|length of messages must",
    ),
)

WORD_RULES = (*REASONS, *MONEY, *RATES, *TOKENS, *CAPACITY, *ACCESS, *REQUEST)
