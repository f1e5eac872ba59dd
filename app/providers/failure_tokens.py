"""Words that speak of tokens: the window of the model, and the cap on its answer.

What was counted, and against what, is the phase. Prompt and answer counted together are
`TOTAL_CONTEXT`, the prompt alone `INPUT_CONTEXT`, the answer alone `OUTPUT`; a window that is only
named is the prompt's. Numbers beside the words are read in `failure_counts`, and correct them.
"""

from app.providers.failure_verdicts import INPUT, OUTPUT, REFUSED, TOTAL, UNKNOWN, rule

_PROMPT = r"(?:prompts?|inputs?|messages?|conversation|history|query|questions?)"
_CAP = (
    r"(?:max(?:imum)? (?:(?:completion|output|new|generated|generation|gen) )?tokens(?! allowed)"
    r"|max (?:gen(?:eration)?|new|output) len(?:gth)?|n(?:um)? predict)"
)
_ANSWER = rf"(?:completions?|outputs?|predictions?|generat(?:ed|ion)|{_CAP})"
_ANSWER_SIZE = (
    rf"(?:{_CAP}|(?:completion|output|generated) (?:of \d{{1,9}} )?(?:tokens?|length|limit))"
)
_SUBJECT = (
    r"(?:prompt|inputs?|messages?|conversation|request|context|sequence|tokens?|text|document)"
)
_OVER = r"(?:exceed(?:s|ed|ing)?|(?:longer|greater|larger|bigger|more) than|overflows?)"
_WINDOW = (
    r"(?:context|window|n ctx|max(?:imum)? (?:\w+ )?(?:length|tokens?|len)|(?:token|model) limit)"
)
_AT_MOST = (
    r"(?:<=?|less (?:than )?(?:or equal|than)|(?:lower|smaller|shorter|larger|higher) than|at most"
    r"|up to|no more than|not? (?:be )?(?:more|greater|bigger) than|not? exceed|between|within"
    r"|only supports|out of range|(?:valid|supported|allowed) range|(?:should|must) be (?:in\b|\[)"
    r"|above (?:the )?max(?:imum)?)"
)
_TOO_MUCH = (
    rf"(?:too (?:large|big|high)|{_AT_MOST}|exceed(?:s|ed)? (?:the )?(?:model )?(?:limit|max)"
    r"|which is the maximum|limit (?:was |is |has been )?(?:reached|exceeded)|reached|limit\b"
    r"|非法|范围|超过|超出|上限|不能大于|小于|最多|最大|过大|之间)"
)
_PROMPT_ZH = r"(?:输入|提示词?|消息|对话|历史|问题|prompt)"
_ANSWER_ZH = rf"(?:输出|生成|回复|回答|{_CAP})"

TOKENS = (
    rule(
        "text-length",
        INPUT,
        "the text of a message is longer than any may be: OpenAI string_above_max_length,"
        " Jackson at DashScope",
        r"(?:content|input|prompt|instructions|text)(?:\[\d+\])?:? string too long",
        r"string value length \(?\d{1,12}\)? exceeds",
    ),
    rule(
        "shape-length",
        REFUSED,
        "a name, a list or a picture that is too long is no window of tokens: OpenAI, Volcengine",
        r"(?:string|array|list|name|object|value|tools?|parameter|param) (?:is )?too (?:long|many)",
        r"\b(?:key|id|name|description|label|title)s? (?:is |are )?too long",
        r"(?:string|array) above max length|(?:string|array) with maximum length",
        r"(?:size|duration|resolution|dimensions|format|number) of (?:the )?(?:input )?"
        r"(?:image|file|audio|video|picture)",
        r"(?:image|file|audio|video|picture) (?:size|format|is too|dimensions|exceeds)",
        r"oversized image",
    ),
    rule(
        "nothing-left-for-output",
        INPUT,
        "the prompt fills the window alone: DeepSeek and vLLM say 0 in the completion, or -186",
        r"\b0 in the completion|requested 0 output",
        rf"{_CAP} must be at least 1, got [1-9]",
    ),
    rule(
        "output-parameter",
        REFUSED,
        "a parameter the model does not take is no limit that was run into: OpenAI, Volcengine",
        r"(?:unsupported|not supported|same time|(?<!be )greater than"
        rf"|budget.{{0,30}}(?:less|lower|smaller) than).{{0,60}}{_CAP}",
        rf"{_CAP}.{{0,80}}(?:not supported|at the same time|(?:must|should) be greater than"
        r"|below min|at least|positive|>= ?\d|expected an? (?:int|num)|valid integer)",
    ),
    rule(
        "window-by-both",
        TOTAL,
        "prompt and answer together are too long: OpenAI, Anthropic, vLLM, TGI, Cohere, OpenRouter",
        r"\(\d{1,9} (?:tokens )?(?:of|in|for) .{0,60}(?:completion|output)\b",
        r"\d (?:tokens )?(?:of|in|for|from) (?:the |your )?\w{0,8} ?(?:messages|prompt|input)\b"
        r".{0,60}\d (?:tokens )?(?:of|in|for) (?:the |your )?(?:completion|output)\b",
        rf"\b{_PROMPT}(?: (?:tokens?|length|count|\(?\d{{1,9}}(?: tokens)?\)?)){{0,3}}"
        r" ?(?:\+|plus|and|,)"
        rf".{{0,30}}\b{_ANSWER}\b",
        rf"(?:{_CAP}|output tokens)(?: \(?\d{{1,9}}\)?)? ?(?:\+|plus|and) .{{0,20}}\b{_PROMPT}\b",
        rf"\b(?:sum|total|combined|together)\b.{{0,80}}\b{_PROMPT}\b.{{0,60}}\b{_ANSWER}\b",
        r"output tokens and your prompt|requested token count exceeds|\btotal tokens exceed",
        r"leaves? (?:only |just )?\d{1,9} tokens? for\b",
        r"token budget \d{1,12} exceeds|model token limit: \d{1,12} \(requested",
        r"(?:your request|the request|answering) .{0,20}will (?:take|need|require) \d",
        rf"{_CAP}.{{0,30}}too large.{{0,40}}(?:maximum|remaining) context",
        r"\bmodel context window exceeded|context shift is disabled",
        rf"{_CAP}\b.{{0,20}}exceeds? (?:the )?(?:\w+ )?context",
        rf"{_PROMPT_ZH}.{{0,10}}(?:与|和|及|加|\+).{{0,10}}{_ANSWER_ZH}",
    ),
    rule(
        "prompt-too-long",
        INPUT,
        "the prompt is what is too long, against whatever: Anthropic, Gemini, Bedrock, Ollama",
        rf"\b{_PROMPT}(?: (?!max\b|output|completion|and\b|or\b|cache|name|id\b)\w+){{0,4}}"
        r" (?:too long|too large|longer than|over the)\b",
        rf"\b{_PROMPT} (?:is |was )?too big\b",
        rf"\b{_PROMPT} tokens:? \d{{1,9}}\b.{{0,20}}\bmax(?:imum)? context",
        rf"\b{_PROMPT} (?:text|content) (?:is )?{_OVER}",
        rf"\b{_PROMPT} (?:token count|tokens?|length|size)\b(?! (?:and|or|plus)\b).{{0,40}}"
        rf"(?:{_OVER}|too long|must (?:be )?less|{_AT_MOST}|limit of| > )",
        rf"\b{_PROMPT}\b[^|]{{0,30}}{_AT_MOST} \d{{1,9}} tokens",
        rf"(?:tokens?|length|size) (?:count )?(?:of|in) (?:the |your )?{_PROMPT}\b.{{0,20}}{_OVER}",
        rf"\b{_PROMPT}\b[^|]{{0,40}}\d{{3,9}} tokens\b[^|]{{0,40}}(?:{_AT_MOST}|only)\b"
        r"[^|]{0,20}\d{3,9}",
        rf"{_AT_MOST} \d{{1,9}} {_PROMPT} tokens|\d tokens in (?:the |your )?{_PROMPT}\b",
        rf"too many {_PROMPT} tokens|number of {_PROMPT} tokens",
        rf"max(?:imum)? {_PROMPT} (?:tokens|length|char)",
        rf"{_PROMPT_ZH}.{{0,16}}(?:过长|超长|太长|超出|超过|超限)",
    ),
    rule(
        "output-cap",
        OUTPUT,
        "more output asked for than the model gives: Anthropic, Cohere, DashScope, Bedrock, Vertex",
        rf"{_ANSWER_SIZE}.{{0,60}}{_TOO_MUCH}",
        rf"{_AT_MOST}.{{0,40}}{_ANSWER_SIZE}\b",
        rf"(?:invalid|range of|value of) {_CAP}|at most \d{{1,9}} (?:completion|output) tokens",
        r"\d output tokens\b.{0,40}(?:only|at most|maximum|limit)",
        r"maximum (?:allowed )?(?:number of )?output(?: tokens)?\b",
        r"completion tokens (?:is|are|of) \d|(?:output|completion|generated|new) tokens exceeded",
        rf"{_CAP}:? (?:of |= ?)?\d{{1,9}} ?> ?\d",
        rf"(?:truncated|cut off|cut short|incomplete)\b.{{0,40}}(?:{_CAP}|length|token limit)",
        rf"unable to complete request: {_CAP}|length (?:finish|limit was reached)",
        rf"(?:最大|超过).{{0,8}}输出|{_ANSWER_ZH}.{{0,12}}(?:过长|超长|太长|超出|超过|上限)",
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
        rf"\b{_OVER}\b.{{0,40}}\bcontext\b|requested \d{{1,9}} tokens\b.{{0,30}}\bcontext\b",
        rf"{_SUBJECT}\b.{{0,20}}\d{{3,9}} tokens\b.{{0,30}}\b(?:over|above|beyond)\b",
        r"\bcontext (?:length |window |size )?(?:is |was )?too (?:large|big|long)",
        r"context (?:length|window|size|limit) (?:has been |was |is )?(?:exceed|reached|full)",
        r"context (?:length|window|size) is \d|not enough context|context overflow",
        r"context the overflows",
        r"(?:input|prompt|context) (?:tokens?|length|size) (?:count )?(?:is |are )?exceed",
        r"(?:prompt|input|messages) (?:has|have|contains?|of) \d{1,12} tokens",
        r"exceed context size|maximum (?:prompt|context|model|sequence) length|max prompt tokens",
        r"(?:input|prompt) (?:token count|tokens? limit|length)\b.{0,60}(?:exceeds?|should be)",
        r"message size .{0,40}exceeds limit",
        r"too many tokens(?!, please| processed)|tokens? limit (?:is |was )?(?:reached|exceeded)",
        r"exceeds? (?:the )?max(?:imum)? (?:length|message|input|context|number of tokens)",
        rf"max(?:imum)? length of (?:the |current ){{0,2}}{_PROMPT}",
        r"sequence length \d",
        r"must have less than \d{1,12} tokens|must be less than max seq len|\bn ctx\b",
        r"max(?:imum)? size: \d{1,12} tokens|(?:tokens|characters) too long",
        r"(?:超出|超过).{0,6}上下文|(?:压缩|缩短|精简)(?:上下文|输入|提示)",
        r"超长|(?:上下文|内容|字数|tokens?).{0,16}(?:过长|超出|超过|超限)",
    ),
    rule(
        "body-size",
        INPUT,
        "too many bytes: a shorter input is what helps; Anthropic request_too_large, DashScope,"
        " nginx, Cloudflare 3006",
        r"(?:payload|entity|body|request|content)(?: size| body| is)* too (?:large|big|long)",
        r"request exceeds the maximum size|(?:request|payload|body) size exceeds",
        r"value at body .{0,60}length less than|expected max length: \d{1,12}, actual",
    ),
)
