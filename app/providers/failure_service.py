"""Words that speak of capacity, access, the request itself and the way to the provider."""

from app.providers.failure_verdicts import BUSY, DENIED, DOWN, REFUSED, rule

_THING = r"(?:model|deployment|endpoint|engine|project|organization|workspace|app|资源|模型)"
_WHO = r"(?:account|user|key|team|organization|project|you|ip|client|app)"

FIRST = (
    rule(
        "tool-declared",
        REFUSED,
        "a declared tool is malformed, whatever words its name has: OpenAI"
        " invalid_function_parameters, Anthropic tools.N.name",
        r"invalid schema for function|invalid function parameters",
        r"\btools\.\d{1,4}\.(?:\w{1,30}\.){0,4}(?:name|input schema)\b",
    ),
    rule(
        "tool-call-malformed",
        DOWN,
        "the model wrote a bad call or bad JSON, another attempt may not: Groq's error page,"
        " Gemini's stops",
        r"tool use failed|malformed function call",
        r"see failed generation|json validate failed|failed to generate json",
    ),
    rule(
        "deadline",
        DOWN,
        "time ran out on the way, which other languages say with words of limits: Go, gRPC",
        r"deadline (?:has been )?exceeded|client\.timeout exceeded|time ?out exceeded",
    ),
    rule(
        "host-too-small",
        DENIED,
        "a model that its own host cannot load stays so until somebody changes it: Ollama,"
        " LM Studio",
        r"more system memory|(?:unable|failed) to load model",
    ),
    rule(
        "engine-down",
        DOWN,
        "the engine behind the answer is gone or still starts: LMDeploy, vLLM, Bedrock"
        " ModelNotReadyException, Volcengine ModelLoadingError, Hugging Face, NVIDIA's DEGRADED",
        r"engine is unavailable|engine ?core encountered",
        r"being loaded|(?:model|currently|is|still) loading\b|model not ready",
        r"not ready (?:to serve|for inference)",
        r"runner .{0,20}(?:terminated|stopped)|model has crashed",
        r"\bdegraded\b.{0,30}(?:cannot|can not|can't|unavailable|invoked)",
    ),
)

CAPACITY = (
    rule(
        "capacity",
        BUSY,
        "the provider is out of capacity now: OpenAI 503, Anthropic 529, Gemini, Ollama, SGLang",
        r"overload|slow down|\bbusy\b|\bcapacity\b|insufficient (?:system|compute|gpu) resource",
        r"too many requests at|status name \| service unavail",
    ),
)

ACCESS = (
    rule(
        "key",
        DENIED,
        "a key or token that is wrong, old or missing: OpenAI 401, Gemini and xAI 400, Baidu 110",
        r"(?:invalid|incorrect|wrong|expired|missing|revoked|unknown|no|illegal) .{0,16}"
        r"(?:api ?key|\btoken\b|credentials?|access key)",
        r"(?:api ?key|access key|\btoken|credentials?)\b[^|]{0,30}\b"
        r"(?:invalid|not valid|expired|revoked|missing|incorrect|disabled|leaked|required"
        r"|not (?:provided|found|set)|must be set|no longer|already been used|reused)",
        r"(?:sign|log)(?:ing)? in again|re ?authenticate",
        r"\bkey (?:is |was |has been )?(?:revoked|expired|disabled)|authorization header",
        r"\bjwt\b|authentication|auth ?failure|unauthorized|unauthenticated|no ?auth|credentials"
        r"|certification failed|signature (?:does ?not match|expired|failure)",
        r"令牌(?:状态|已过期|无效)|鉴权|身份验证|认证失败|密钥|api key.{0,6}(?:无效|错误|仅限)",
    ),
    rule(
        "permission",
        DENIED,
        "somebody has to allow it first: permission, region, terms, account; OpenAI 403, Bedrock",
        r"permission|missing (?:\w+ )?scopes?|insufficient scopes?|operation not allowed",
        r"access (?:to \w+ )?denied|access terminated",
        r"illegal access|not have access|access (?:is |was )?not (?:enabled|granted)",
        rf"\b{_WHO}\b.{{0,50}}\b(?:not (?:authorized|allowed|permitted|activated|eligible|enabled)"
        r"|disabled|deactivated|restricted|blocked|banned|suspended|locked)\b",
        r"must be (?:a member|verified)|not activated|not (?:agreed|whitelist)|non whitelist"
        r"|allowlist|unusual traffic|for account\b|not have access|disabled by",
        r"unsupported country|(?:location|country|region|territory) .{0,20}not supported",
        r"(?:未|暂未|没有)(?:开通|开放|授权|激活)|白名单|实名|无权|封禁|冻结|地区.{0,6}不支持",
    ),
    rule(
        "model",
        DENIED,
        "this model or address is not to be had: OpenAI model_not_found, Groq, Cloudflare 5007",
        r"model not (?:found|open|supported?)|(?:^|\| )not found error|no such model"
        r"|unknown model|unsupported model|(?:invalid|not a valid) model\b",
        r"model name is invalid|model identifier|model currently not support",
        rf"\b{_THING}\b.{{0,60}}\b(?:not (?:found|exist|deployed)|does ?n[o']t exist|can ?not be "
        r"found|decommissioned|deprecated|retired|end of its life|inaccessible)\b",
        r"not available in (?:your|this) (?:region|country|location)",
        r"does not exist|no endpoints found|no available channel|无可用渠道|no enabled keys"
        r"|unsupported (?:openapi )?method|not accessible|unsupported api",
        r"not support the .{1,30} model|\bapp unavailable",
        r"不存在|已下线|已停用|模型.{0,20}不可用|model disabled",
    ),
    rule(
        "trust-or-address",
        DENIED,
        "certificate, proxy, address or host stay as they are until somebody changes them",
        r"certificate|\bcert\b|certification path|hostname mismatch|proxy ?authentication",
        r"unsupported ?protocol|too ?many ?redirects|invalid ?url|url error|local ?protocol ?error",
    ),
)

REQUEST = (
    rule(
        "malformed",
        REFUSED,
        "a field that is not known is no permission that is missing, and a template that fails"
        " fails again: Bedrock, pydantic, llama.cpp, LM Studio",
        r"\bjinja\b|chat template|malformed input request|extraneous key",
        r"extra (?:inputs?|fields?) (?:are )?not permitted",
    ),
    rule(
        "account-closed",
        DENIED,
        "an account that was closed for what others asked is no refusal of this request: Zhipu"
        " 1121, OpenAI account_deactivated, Moonshot",
        r"\b(?:account|organization|user|team|project|workspace)\b[^|.]{0,40}"
        r"\b(?:suspended|banned|disabled|deactivated|terminated|locked)\b",
        r"账[户号].{0,14}(?:锁定|封禁|冻结|禁用|停用|注销)",
    ),
    rule(
        "policy",
        REFUSED,
        "the content was refused: OpenAI and Azure content_filter, DashScope, MiniMax, Moonshot",
        r"content (?:filter|management policy|exists risk|policy|moderation)|usage polic"
        r"|flagged|moderation|responsible ai|prohibited content|censor|content .{0,30}is blocked",
        r"inappropriate content|inspection ?failed|high risk|\bsafety\b(?! buffer| margin)",
        r"\bsensitive\b|guardrail|severe violation|violat\w+ .{0,30}(?:polic|guideline)",
        r"repetitive patterns|\binvalid prompt\b|blocked (?:input|output|content|prompt)"
        r"|(?:input|output|prompt|content|response) (?:was |is |has been )?(?:blocked|filtered)",
        r"(?:没有|未)通过.{0,6}(?:策略|审核|审查|检测|安全)",
        r"涉敏|敏感|违规|违法|不合规|不安全|(?:审核|审查|检查|检测)(?:未|不)通过",
    ),
)

NETWORK = (
    rule(
        "network",
        DOWN,
        "the way to the provider broke: httpx, requests, aiohttp, urllib3, Node and Go wordings",
        r"connection (?:reset|refused|aborted|closed|broken|error|timed out)|broken pipe",
        r"payload is not completed|incomplete ?read|chunked read|invalid ?chunk",
        r"server disconnected|socket hang up|other side closed|remote end closed|peer closed",
        r"econn\w+|etimedout|enotfound|eai again|epipe|getaddrinfo|name or service not known",
        r"unexpected eof|eof occurred|fetch failed|upstream connect error|cannot connect to host",
        r"stream (?:disconnected|ended) before|incomplete generation",
    ),
)

SCHEMA = (
    rule(
        "schema",
        REFUSED,
        "the request itself is malformed: OpenAI invalid_request_error, Anthropic, Zhipu, Qianfan",
        r"invalid schema|should match pattern|invalid json|invalid (?:api )?param|invalid request",
        r"(?:unsupported|unknown) parameter|missing field|invalid (?:\w+ )?(?:role|field|format)",
        r"参数|格式(?:错误|不正确|有误|不支持)|取值|不合法|不能为空",
        r"bad request error|missing (?:required|param)|length of messages must|invalid argument",
    ),
)

PASSING = (
    rule(
        "passing-fault",
        DOWN,
        "their side broke, whatever the status: Dify, Volcengine ClosedEndpoint, Bedrock 424",
        r"internal (?:server )?error|internal failure|service unavailable|crashed",
        r"unexpected error|unknown error|server error|\btimed? ?out\b",
        r"try your request again|retry your request(?:\.|$)",
        r"temporarily unavailable|\bupstream\b|内部(?:系统)?(?:错误|异常)|服务异常|系统错误",
    ),
)

VAGUE = (
    rule(
        "vague-address",
        DENIED,
        "without a status, a thing that is not there is an address: Gemini interactions",
        r"(?:^|\| )not found\b",
    ),
    rule(
        "vague-schema",
        REFUSED,
        "without a status, what must be otherwise is the request: Qianfan 216103, Tencent",
        r"invalid ?(?:request|json)|bad ?request|\bmust be\b|is required|\bparam too long",
        r"(?<!response )(?:is|be) empty|validation error",
        r"not (?:supported|permitted)|does not support|malformed|deserialize|\bexpected\b",
    ),
)
