# ruff: noqa: RUF001 - Cyrillic letters are meant
r"""Words of other languages than English and Chinese: gateways and resellers translate.

An exhausted quota that is not understood would be tried again, since it comes as 429. One list for
each thing that is said, over all languages, in the form of `failure_words`: lower case, without
accents. Nouns and verbs are looked for near each other in either order, so that no sentence need be
known. What a status tells is not looked for: 401, 404, 503.

In the lists a blank parts two alternatives, `\s` is a blank. The languages are French, Spanish,
Portuguese, Italian, German, Dutch, Polish, Turkish, Indonesian, Vietnamese, Russian, Japanese and
Korean.
"""

from app.providers.failure_verdicts import BUSY, INPUT, OUTPUT, QUOTA, RATE, rule
from app.providers.failure_words import plainer


def _any(alternatives: str) -> str:
    return "|".join(plainer(one) for one in alternatives.split())


def _near(these: str, those: str, most: int = 40) -> tuple[str, str]:
    """One word of each list, in either order, in one sentence."""
    gap = rf"[^|.;。]{{0,{most}}}"
    return rf"(?:{these}){gap}(?:{those})", rf"(?:{those}){gap}(?:{these})"


_MEANS = _any(
    r"""
    \bquotas?\b credits?\b \bbudget\b contingent \bcuota \bcota\b \bsaldo\b credito crediti
    \bfondi\b \bfondos\b orcamento presupuesto \bsolde\b \bplafond forfait abonnement abbonamento
    suscripcion assinatura
    \bpiano\b kontingent guthaben \btarif tegoed quotum kredyt srodk abonament \bkota kredi\b
    bakiye abonelik \bkuota kredit han\smuc han\sngach so\sdu\b
    квот баланс кредит средств бюджет подписк тариф
    クレジット 残高 利用枠 使用枠 クォータ 割り当て 予算 サブスクリプション 利用料金 使用量
    maandlimiet daglimiet weeklimiet
    크레딧 할당량 잔액 쿼터 예산 요금제 구독 사용량 사용\s?한도
    """
)
"""What is paid for."""

_SPENT = _any(
    r"""
    epuise depasse insuffisant insufficiente atteint expiree?\b expirou expirado agota
    insuficiente superad excedid
    alcanz vencid caducad esgot atingi ultrapass acabaram acabou esaurit superat raggiunt scadut
    aufgebraucht reicht\snicht erschopft uberschritten ausgeschopft abgelaufen unzureichend
    erreicht verbraucht
    uitgeput bereikt overschreden onvoldoende verlopen wyczerpan przekrocz niewystarcz wygas brak\s
    asildi yetersiz tukendi doldu\b bitti\b habis\b tidak\s(?:men)?cukup terlampaui
    da\shet \bhet\s(?=han|so|tien|credit) khong\sdu vuot\squa
    исчерп недостаточно превышен израсход законч истек
    不足 超え 超過 上限 使い切 尽き 期限切れ ありません 足りません
    부족 초과 소진 만료 없습니다 도달
    """
)

_ASKS_TO_PAY = _any(
    r"""
    rechargez recargue ricaric[ah] recarregue aufladen aufzuladen
    (?:sin|sem)\s(?:saldo|creditos?|fondos) kein\sguthaben tegoed\sis\sop waardeer
    nap\s(?:them\s)?tien isi\sulang bakiye\syukle doladuj пополн
    limite\s(?:do|de|del|d[iu])\s(?:\S{2,6}\s)?(?:plano|plan|forfait|abonnement|piano|suscripcion)
    limit\s(?:ihres|deines)\s(?:tarif|plan|abo)
    nicht\sgenug(?:end)?\s(?:guthaben|credits) paiement\s(?:requis|refuse)
    pago\s(?:requerido|rechazado) pagamento\s(?:necessario|richiesto)
    zahlung\s(?:erforderlich|fehlgeschlagen) 支払い(?:が必要|に失敗) プランの上限 결제가\s필요
    требуется\sоплата
    """
)

_CALENDAR = _any(
    r"""
    quotidien journalier mensuel hebdomadaire par\s(?:jour|mois|semaine)\b aujourd.?hui
    \bdiari[oa] mensual mensal semanal por\s(?:dia|mes|semana)\b \bhoy\b \bhoje\b
    giornalier mensile settimanale al\s(?:giorno|mese)\b \boggi\b
    \btages taglich monats monatlich wochen wochentlich pro\s(?:tag|woche|monat)\b \bheute\b
    dagelijks maandelijks dzienn miesieczn gunluk aylik harian bulanan
    дневн суточн месячн недельн в\s(?:день|сутки|месяц|неделю) сегодня
    1日 日次 月間 月次 週間 本日 今月 今日 毎月 毎日 일일 하루 월간 월별 주간 오늘
    """
)

_BOUND = _any(
    r"""
    limit quota contingent kontingent cuota cota\b kota kuota лимит квот 上限 制限 枠
    한도 제한 할당량
    """
)

_PER_MOMENT = _any(
    r"""
    par\s(?:minute|seconde)\b pro\s(?:minute|sekunde)\b por\s(?:minuto|segundo)\b
    al\s(?:minuto|secondo)\b per\sminuut na\sminut[ea] в\s(?:минуту|секунду)
    (?:毎|1)分(?:間|あたり) 分あたり 毎[分秒] 분당 초당 1분에
    """
)

_OFTEN = _any(
    r"""
    trop\sde\s(?:requetes|demandes|connexions|appels) trop\sfrequent
    limite\sde\s(?:debit|requetes|frequence|taux|velocidad|frecuencia|solicitudes|peticiones|tasa)
    limite\sd[ei]\s(?:taxa|requisicoes|solicitacoes|frequenza|velocita|richieste)
    demasiad[ao]s\s(?:solicitudes|peticiones|llamadas|consultas) troppe\s(?:richieste|chiamate)
    (?:muitas|excesso\sde)\s(?:solicitacoes|requisicoes|chamadas)
    zu\sviele\s(?:anfragen|anforderungen|aufrufe) (?:raten|anfrage[nr]?)\s?(?:limit|begrenzung)
    te\sveel\s(?:verzoeken|aanvragen) zbyt\swiele\s(?:zadan|zapytan) limit\szapytan
    cok\sfazla\sistek qua\snhieu\syeu\scau terlalu\sbanyak\spermintaan
    слишком\s(?:много|част) частот[аы]\sзапрос лимит\s(?:запросов|частоты|скорости)
    リクエスト数?が?(?:多すぎ|過多) レート(?:制限|リミット)
    너무\s많은\s요청 요청이\s너무\s많 요청\s?(?:한도|속도|빈도|제한) 속도\s?제한
    """
)

_LOADED = _any(
    r"""
    (?:serveur|modele|service|systeme)s?\s(?:\S{1,20}\s){0,3}(?:surcharge|sature)
    forte\s(?:demande|affluence) sobrecargad alta\s(?:demanda|domanda) sobrecarregad sovraccaric
    uberlastet ausgelastet hohe[rn]?\s(?:auslastung|nachfrage) overbelast przeciaz asiri\syuk
    qua\stai\b перегруж высок\S{1,8}\s(?:нагрузк|спрос) 混雑 混み合 過負荷 과부하 혼잡
    """
)

_ASKED = _any(
    r"""
    context[eo] contesto kontext \bprompts? entree entrada eingabe conversation conversacion
    conversa\b messages? mensajes? mensagem messaggi nachricht texte?\b jetons \btokens?
    контекст промпт запрос сообщени токен コンテキスト トークン プロンプト 入力
    컨텍스트 토큰 프롬프트 입력
    """
)

_LONG = _any(
    r"""
    trop\s(?:longu?e?s?|grand|volumineu) depasse\b depassent demasiado\s(?:larg|grand|extens)
    \bexcede \bsupera\b muito\s(?:long|grande) long[oa]\sdemais ultrapassa troppo\s(?:lung|grand)
    zu\s(?:lang|gross) uberschreite ubersteigt te\slang za\sdlug cok\suzun qua\sdai
    terlalu\spanjang слишком\s(?:длин|больш|велик) превыша превышен 長すぎ 超え 超過
    초과 너무\s[길깁]
    """
)

_ANSWERED = _any(
    r"""
    sortie\b reponse salida respuesta saida resposta uscita risposta ausgabe antwort вывод ответ
    出力 応答 출력 응답
    """
)

WINDOWS_ABROAD = (
    rule(
        "calendar-window-abroad",
        QUOTA,
        "a day, a week or a month in another language: gateways and resellers translate",
        *_near(_CALENDAR, _BOUND, 30),
    ),
    rule(
        "rate-window-abroad",
        RATE,
        "a minute or a second in another language, though it is called a quota",
        _PER_MOMENT,
    ),
)

MONEY_ABROAD = (
    rule(
        "money-abroad",
        QUOTA,
        "what is paid for is used up, in another language, whatever the status",
        *_near(_MEANS, _SPENT),
        _ASKS_TO_PAY,
    ),
)

LOAD_ABROAD = (
    rule("load-abroad", BUSY, "load in another language, where the status says rate", _LOADED),
)

RATES_ABROAD = (rule("rate-abroad", RATE, "asked too often, in another language", _OFTEN),)

TOKENS_ABROAD = (
    rule(
        "output-abroad",
        OUTPUT,
        "the answer would be too long, in another language",
        *_near(_ANSWERED, _LONG),
    ),
    rule(
        "prompt-abroad",
        INPUT,
        "the prompt is too long, in another language",
        *_near(_ASKED, _LONG, 50),
    ),
)
