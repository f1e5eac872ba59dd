"""Words that speak of money, of plans and of rates.

A rolling window with a stated wait is a rate; a calendar day, week or month, a plan, credits or a
budget is a quota. Windows come first, because Google and Alibaba call a rate of a minute a quota;
money comes before rates, because an exhausted quota is also sent as 429.
"""

from app.providers.failure_verdicts import BUSY, QUOTA, RATE, RATE_TOO_BIG, rule

_BUDGET = r"(?<!context )(?<!retry )(?<!error )(?<!thinking )(?<!reasoning )budget"
"""One of money: others are counted in tokens or attempts."""
_MONEY = (
    rf"balances?|credits?|funds?|(?<!rate )(?<!rate limit )quotas?|{_BUDGET}(?! \d)|allowance"
    r"|allotment|wallet|resource ?pack(?:age|s)?|token (?:plan|package)|\bpoints"
)
_MONEY_ZH = r"(?:额度|配额|余额|资源包|余量|积分|点数|套餐|次数|费用|金额|消费|token 包)"
_SPENT_ZH = r"(?:不足|不够|用尽|耗尽|用完|用光|为零|失败)"
_SPENT = (
    r"insufficient|exhausted|\blow\b|not (?:sufficient|enough)|exceeded|depleted|used up"
    r"|overdrawn|run out|reached|negative|consumed|expired|failed|burned through|\bspent\b"
    r"|\bempty\b|been used\b"
)
_PLAN = r"(?:plan|subscription|trial|membership)"
_LOAD = r"(?:high|heavy|peak|elevated) (?:traffic|demand|load)"

WINDOWS = (
    rule(
        "capacity-reason",
        BUSY,
        "a reason that names capacity, whatever status or code it has: Gemini, Volcengine, Groq"
        " flex, OpenAI server_is_overloaded, Cerebras queue_exceeded, one-api's 负载已饱和",
        r"model capacity exhausted|server (?:is )?overloaded|engine overloaded",
        r"\bcapacity exceeded|no capacity available|due to system capacity|reset reason: overflow",
        r"queue exceeded|no more data centers|负载已饱和",
        rf"experiencing {_LOAD}|{_LOAD} detected|over capacity",
    ),
    rule(
        "credits-in-flight",
        RATE,
        "credits held by requests that still run come back by themselves: OpenRouter",
        r"in flight (?:budget|requests)",
    ),
    rule(
        "rolling-window",
        RATE,
        "a day that rolls and states its wait in minutes is a rate: OpenAI RPD, Groq TPD",
        r"rate limit reached for\b[^|]{0,300}\btry again in \d",
        r"rate limit exceeded for\b[^|]{0,80}\blimit type\b",
    ),
    rule(
        "free-allowance",
        QUOTA,
        "what was given for nothing is used up: DashScope, Volcengine QuotaExceeded, Cloudflare",
        r"free (?:tier|trial|allocat\w+|quota|credits?|resource|requests|messages|usage)\b"
        rf"[^|.;,*]{{0,40}}(?:{_SPENT}|expired|ended)",
        r"(?:exhausted|used up)\b[^|.;,*]{0,30}\bfree\b",
        r"(?<!limit )(?:exceeded|reached)\b[^|.;,*]{0,50}\bfree (?:plan|account|quota|allowance)\b",
        r"tier only\b|\bfree (?:(?!rate)\w+ ){0,2}limits?\b(?![^|.]{0,30}per min)",
    ),
    rule(
        "calendar-window",
        QUOTA,
        "a day, a week or a month is a quota, not a rate: Gemini quotaId, Cloudflare, Qianfan,"
        " the windows of Anthropic's subscriptions",
        r"per ?(?:model ?)?(?:day|week|month)\b|/ ?(?:day|week|month)\b|per (?:24|48) hours",
        r"\b(?:daily|weekly|monthly|day|week|month|hourly|session|annual)\b.{0,30}"
        r"(?:limits?|caps?|allocation|quota|allowance|allotment|credits|usage|budget)\b(?! *:)",
        r"\d.?(?:hours?|hrs?|h|days?|weeks?) (?:(?!rate)\w+ )?(?:limit|quota|cap)\b",
        r"hour allocated quota",
        r"\b(?:rpd|tpd)\b|billing (?:period|cycle)",
        r"quota will reset after (?:\d{1,3}d ?)?\d{1,3}h",
        r"\b(?:daily|weekly|monthly)\b.{0,20}\b(?:tokens|allotment|budget|requests)\b",
        r"\btomorrow\b|requests today|明[天日]",
        r"使用(?:上限|限额)|[今每当本][日天周月].{0,12}(?:限额|上限|额度|次数|配额)",
        r"(?<!rate )limit (?:·|resets|will reset)(?! (?:in|after) ~?\d{1,6} ?[sm])",
        r"will regain access|limit reached until|unified status: rejected",
    ),
    rule(
        "request-over-window",
        RATE_TOO_BIG,
        "one request bigger than the whole minute's bucket waits in vain: Groq, OpenAI TPM",
        r"request too large for .{0,200}per min",
    ),
    rule(
        "rate-window",
        RATE,
        "a rolling window, though it is called a quota: Gemini quotaId, Vertex, Huawei, DashScope",
        r"per ?(?:minute|min|second|sec)\b|/ ?(?:min(?:ute)?|s(?:ec(?:ond)?)?)\b|每(?:分钟|秒)",
        r"(?:requests?|calls|prompts|messages|tokens)\b[^|.;,]{0,20}\b(?:every|in|within)(?: the)?"
        r"(?: last| past)? \d{1,4} ?(?:s|secs?|seconds?|mins?|minutes?)\b",
        r"quota exceeded for (?:aiplatform|quota metric|metric)",
        r"\bthrottling|#token limit|allocated quota exceeded|exhausted your capacity",
    ),
)

MONEY = (
    rule(
        "money",
        QUOTA,
        "only paying, a new plan or an owner's decision helps: OpenAI error codes, DeepSeek 402",
        r"\b(?:insufficient|no|any|out of|enough|exceed(?:s|ed|ing)?|crossed|over|exhausted"
        r"|depleted|used (?:up )?all|consumed|burned through|spent)\b"
        rf"(?: [\w'$]+){{0,4}} ?(?:{_MONEY})\b",
        rf"(?:{_MONEY})\b[^|.;]{{0,60}}(?:{_SPENT})",
        rf"{_MONEY_ZH}.{{0,12}}{_SPENT_ZH}|{_SPENT_ZH}.{{0,6}}{_MONEY_ZH}",
        r"(?:超过|超出).{0,8}(?:配额|额度|预算)",
    ),
    rule(
        "spending-limit",
        QUOTA,
        "a limit that an owner has set: OpenAI *_spend_limit_exceeded, Anthropic, xAI, LiteLLM",
        r"(?:usage|spend(?:ing)?|cost|budget|billing|credit|inference|hard) (?:limits?|caps?)\b",
        rf"{_BUDGET} exceeded|(?:exceeded|crossed|over) budget|set limit exceeded|limit exhausted",
        r"exceeded token budget|(?:max|maximum) budget\b|(?:^|\| )limit exceeded exception",
        r"\bkey limit exceeded|\(total limit\)",
        r"(?:hit|reached) your (?:usage |session |message |plan )?limit",
        r"\bout of (?:\w+ )?(?:usage|tokens|requests|messages)\b|extra usage is required",
        r"exceeded your (?:\w+ ){0,3}usage\b|100 ?% of (?:your|the)\b",
        r"lifetime (?:limit|quota|usage)",
        r"number of (?:requests|messages|calls) (?:allowed )?(?:for|on|in|of) (?:your|the)"
        rf" (?:\w+ )?(?:{_PLAN}|tier)\b",
        r"no (?:remaining )?(?:requests|calls|messages|tokens)\b"
        r"(?: left| remaining| on (?:your|this|the))",
        r"insufficient tokens?\b|overdrawn",
        r"balance(?: is)?:? ?[$¥€£]? ?(?:-\d|0(?:\.0{1,4})?(?![.\d]))",
        r"用量.{0,8}(?:超|上限)|(?:消费|用量|月度)(?:上限|限额)",
    ),
    rule(
        "payment",
        QUOTA,
        "a bill is open, a plan has ended or nothing was ever bought: DashScope *BillOverdue,"
        " Anthropic billing_error, Zhipu 1309, Huawei, xAI",
        r"billing (?:not active|error|issue|disabled|to be enabled)|payment (?:required|failed)",
        r"(?:problem|issue) with your payment|failure to pay|unpaid",
        r"overdue|arrear|past due|good standing",
        r"(?:requires?|are required|need|more|available|purchase|buy)\b.{0,20}\bcredits",
        r"credits (?:are |is )?required|(?:need|requires?) an? .{0,20}subscription",
        r"can only afford",
        r"payment method (?:is )?required|card (?:was |is )?declined|non ?payment|\btop ?up\b",
        r"pay as you go|billing (?:is )?not (?:enabled|set up)|\brecharge\b",
        r"(?:unpaid|outstanding|overdue|open) invoices?",
        r"\binvoices?\b[^|.]{0,30}(?:unpaid|overdue|due\b)",
        r"until payment|payment is (?:received|due)|deposit funds",
        r"not purchased|suspended due to",
        r"欠费|充值|续费|续订|停服|透支|请购买|无可用.{0,2}(?:额度|余额|资源)",
        r"no auth error.{0,30}tokens\.total",
    ),
    rule(
        "plan",
        QUOTA,
        "what was bought or tried has ended, or gives no more: Zhipu 1309, Huawei, Eigent, xAI",
        r"paid (?:plan|tier|balance)",
        rf"\b{_PLAN}(?:'?s)?\b(?: \w+){{0,4}} (?:expired|ended|over|lapsed|inactive|consumed"
        r"|exhausted|used up|run out)\b",
        r"(?:no|without an?) active subscription|subscription (?:is )?(?:required|needed|inactive)",
        r"renew your (?:subscription|plan|membership)",
        r"not (?:included|part of|covered) .{0,20}\bplan\b",
        rf"\b{_PLAN} limits?\b|(?<!rate )(?<!concurrency )limits? of (?:your|the)"
        rf" (?:current )?{_PLAN}\b",
        r"(?:套餐|会员|订阅|试用).{0,6}(?:到期|过期|失效|结束|用完)",
    ),
)

LOAD = (
    rule(
        "load",
        BUSY,
        "the text says load where code and status say rate: Gemini, Pollinations, MiniMax 529",
        rf"\b{_LOAD}\b|overloaded|too busy|(?:server|service|llm|model|system|engine) busy",
        r"service unavailable exception|queue (?:is )?full|queued requests|saturated",
        r"at (?:full )?capacity|no slots available|pending requests exceeded|too much load",
        r"\bno (?:available |free )?(?:gpus?|slots?|workers?|replicas?|instances?)\b",
        r"resources? (?:are |is )?temporarily|compute resources? (?:are |is )?(?:un|not )available",
        r"访问量过大|繁忙|(?:算力|资源)(?:紧张|不足)|过载|人数过多|排队|队列已?满|负载(?:较|过)高",
    ),
)

RATES = (
    rule(
        "rate",
        RATE,
        "asked too often: OpenAI rate_limit_exceeded, Anthropic rate_limit_error, Moonshot",
        r"rate ?limit|request rate|burst rate|call rate",
        r"\b(?:rpm|tpm|qps|tps|qpm|rps|itpm|otpm)\b|qps ?over ?flow",
        r"too many (?:concurrent |api )?(?:requests|calls|connections|tokens, please wait)",
        r"requests? limit (?:is )?(?:exceeded|reached)|limit requests|requests list",
        r"requests? .{0,20}(?:limited|max request)|token quota exceeded|request quota exceeded",
        r"concurren(?:cy|t)\b|(?:simultaneous|parallel) (?:requests?|calls|sessions|connections)",
        r"throttled|cool(?:ing)? ?down|too frequent|request frequency|temporarily limited",
        r"\brate (?:is |was )?exceeded|exceeded (?:your |the )?rate\b|too high a rate",
        r"throughput exceeded",
        r"resource (?:has been )?exhausted|server limit exceeded",
        r"(?:requests?|sending)\b.{0,20}\btoo (?:quickly|fast)",
        r"限速|限流|过快|速率|频率|频繁|并发|(?<!长度)(?<!输入)超限|请求过多|超过限额|流控",
        r"流量(?:限制|控制)|用量受限",
    ),
)
