"""Words that speak of tokens: the window of the model, and the cap on its answer.

The phase follows the wording, and the numbers where they say more: a prompt that is larger than
the window by itself is too long, however the sentence counts.
"""

import re

from app.providers.failure_verdicts import (
    INPUT,
    OUTPUT,
    RATE,
    RATE_TOO_BIG,
    REFUSED,
    TOTAL,
    UNKNOWN,
    Verdict,
    rule,
)

_CAP = r"max(?:imum)? (?:completion |output |new |generated )?tokens"
_SUBJECT = r"(?:prompt|inputs?|messages?|conversation|request|context|sequence|tokens?)"
_OVER = r"(?:exceed(?:s|ed|ing)?|(?:longer|greater|larger|bigger) than|overflows?)"
_WINDOW = r"(?:context|window|n ctx|max(?:imum)? (?:\w+ )?(?:length|tokens?|len)|token limit)"

TOKENS = (
    rule(
        "shape-length",
        REFUSED,
        "a name, a list or a picture that is too long is no window of tokens: OpenAI, Volcengine",
        r"(?:string|array|list|name|object|value|tools?|parameter|param) (?:is )?too (?:long|many)",
        r"(?:string|array) above max length|(?:string|array) with maximum length",
        r"(?:size|duration|resolution|dimensions|format|number) of (?:the )?(?:input )?"
        r"(?:image|file|audio|video|picture)",
        r"(?:image|file|audio|video|picture) (?:size|format|is too|dimensions)|oversized image",
    ),
    rule(
        "output-parameter",
        REFUSED,
        "a parameter the model does not take is no limit that was run into: OpenAI, Volcengine",
        rf"(?:unsupported|not supported|same time|greater than).{{0,60}}{_CAP}",
        rf"{_CAP}.{{0,80}}(?:not supported|at the same time|must be greater than)",
    ),
    rule(
        "nothing-left-for-output",
        INPUT,
        "the prompt fills the window alone: DeepSeek and vLLM say 0 in the completion, or -186",
        r"\b0 in the completion",
        rf"{_CAP} must be at least 1, got",
    ),
    rule(
        "window-by-both",
        TOTAL,
        "prompt and answer together are too long: OpenAI, Anthropic, vLLM, TGI, Cohere, OpenRouter",
        r"\(\d{1,9} (?:tokens )?(?:of|in|for) .{0,60}(?:completion|output)\b",
        rf"(?:tokens?|length|count|prompt|inputs?|messages?) (?:\+|plus|and) .{{0,20}}{_CAP}",
        r"(?:prompt|inputs?) (?:tokens )?(?:and|plus|\+) (?:the )?(?:maximum |requested )?"
        r"(?:output|prediction|completion|generated)",
        r"output tokens and your prompt|requested token count exceeds",
        r"token budget \d{1,12} exceeds|model token limit: \d{1,12} \(requested",
        rf"{_CAP}.{{0,30}}too large.{{0,40}}maximum context",
        r"\bmodel context window exceeded",
    ),
    rule(
        "output-cap",
        OUTPUT,
        "more output asked for than the model gives: Anthropic, Cohere, DashScope, Bedrock, Vertex",
        rf"{_CAP}.{{0,60}}"
        r"(?:too large|must be (?:<=|less|at most|between|in)|valid range|supported range"
        r"|should be \[|<=|非法|above maximum|which is the maximum"
        r"|exceeds? the (?:model )?(?:limit|max)|out of range|cannot (?:exceed|be greater))",
        rf"(?:invalid|range of|value of) {_CAP}|at most \d{{1,9}} (?:completion|output) tokens",
        r"\d output tokens\b.{0,40}(?:only|at most|maximum|limit)",
        r"maximum (?:allowed )?(?:number of )?output(?: tokens)?\b",
        rf"unable to complete request: {_CAP}|output (?:token )?limit (?:was |is )?reached",
    ),
    rule(
        "window-unknown",
        UNKNOWN,
        "a window is named, and nothing says which side was too much: new-api, older tokenizers",
        r"maximum context length failed|indices sequence length is longer",
    ),
    rule(
        "window",
        INPUT,
        "the prompt is longer than the window: OpenAI context_length_exceeded, llama.cpp"
        " exceed_context_size_error, Anthropic, Gemini, Bedrock, xAI, LM Studio, Mistral, Zhipu",
        rf"{_SUBJECT}\b.{{0,30}}\b(?<!took )too (?:long|large (?:for model|to process))",
        rf"{_SUBJECT}\b.{{0,40}}\b{_OVER}\b.{{0,40}}\b{_WINDOW}\b",
        rf"\b{_OVER}\b.{{0,40}}\bcontext\b|context (?:length|window|size|limit) exceed(?:s|ed)",
        r"context length is \d|context overflow|context the overflows",
        r"(?:input|prompt|context) (?:tokens?|length|size) (?:count )?(?:is |are )?exceed",
        r"(?:prompt|input|messages) (?:has|have|contains?|of) \d{1,12} tokens",
        r"exceed context size|maximum (?:prompt|context|model|sequence) length|max prompt tokens",
        r"(?:input|prompt) (?:token count|tokens? limit|length)\b.{0,60}(?:exceeds?|should be)",
        r"prompt token count of \d{1,12} exceeds|message size .{0,40}exceeds limit",
        r"too many tokens(?!, please| processed)|tokens limit reached",
        r"exceeds? max(?:imum)? (?:length|message|input|context)|max(?:imum)? input (?:char|tok)",
        r"must have less than \d{1,12} tokens|must be less than max seq len|\bn ctx\b",
        r"max(?:imum)? size: \d{1,12} tokens|(?:tokens|characters) too long",
        r"超长|(?:输入|上下文|提示词|内容|tokens?).{0,16}(?:过长|超出|超过)",
    ),
    rule(
        "body-size",
        INPUT,
        "too many bytes: a shorter input is what helps; Anthropic request_too_large, DashScope,"
        " nginx, Cloudflare 3006",
        r"(?:payload|entity|body|request|content)(?: size| body| is)* too (?:large|big|long)",
        r"request exceeds the maximum size|(?:request|payload|body) size exceeds",
        r"value at body .{0,60}length less than",
    ),
)

_WINDOW_SIZE = re.compile(r"(?:context length (?:is|of)|limit of|window \(|<=) ?(\d{1,9})")
_PROMPT_SIZE = re.compile(
    r"(\d{1,9}) (?:tokens )?(?:(?:in|of|from) (?:the |your )?(?:messages|prompt|text input|input)"
    r"|input tokens|inputs tokens)"
)
_ASKED_AND_ALLOWED = re.compile(r"\blimit:? (\d{1,12})\b[^|]{0,60}\brequested:? (\d{1,12})")


def by_numbers(verdict: Verdict, words: str) -> Verdict:
    """The verdict, corrected where the numbers beside the words say more than they do."""
    if verdict is TOTAL and _first(_PROMPT_SIZE, words) > _first(_WINDOW_SIZE, words) > 0:
        return INPUT
    if verdict is RATE:
        found = _ASKED_AND_ALLOWED.search(words)
        if found and int(found[2]) > int(found[1]):
            return RATE_TOO_BIG
    return verdict


def _first(pattern: re.Pattern[str], words: str) -> int:
    found = pattern.search(words)
    return int(found[1]) if found else 0
