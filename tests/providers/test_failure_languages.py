# ruff: noqa: RUF001 - Cyrillic letters are meant
"""What a failure is, told in other languages than English, as gateways and resellers do."""

import pytest

from app.turn.failures import TokenLimitPhase
from tests.providers.evidence import BUSY, QUOTA, RATE, TOKENS, failure_from, openai_error

INPUT, OUTPUT = TokenLimitPhase.INPUT_CONTEXT, TokenLimitPhase.OUTPUT


@pytest.mark.parametrize(
    "message",
    [
        "Votre quota mensuel est épuisé. Veuillez recharger votre compte.",
        "Plafond de dépenses atteint",
        "Limite quotidienne atteinte",
        "Ihr Kontingent ist aufgebraucht.",
        "Ihr Tageslimit ist erreicht",
        "Nicht genügend Guthaben",
        "Ha superado su cuota mensual.",
        "Se agotaron sus créditos",
        "Você atingiu o limite do seu plano.",
        "Sua assinatura expirou",
        "Credito residuo insufficiente",
        "Abbonamento scaduto",
        "Je tegoed is op.",
        "Przekroczono limit miesięczny",
        "Günlük kota aşıldı",
        "Saldo tidak mencukupi",
        "Hết hạn mức sử dụng",
        "Ваша квота исчерпана.",
        "Недостаточно средств на счете",
        "Дневной лимит превышен",
        "利用枠の上限に達しました。",
        "残高が不足しています",
        "1日の利用上限に達しました",
        "크레딧이 부족합니다.",
        "일일 한도를 초과했습니다",
        "帳戶餘額不足，請儲值",
        "您的额度已用尽",
    ],
)
def test_a_quota_is_one_in_every_language_and_never_retried(message: str) -> None:
    for status in (402, 403, 429, 500):
        failure = failure_from(openai_error(status, message))

        assert (failure.type, failure.retryable) == (QUOTA, False), status


@pytest.mark.parametrize(
    "message",
    [
        "Trop de requêtes",
        "Quota de requêtes par minute dépassé",
        "Ratenlimit überschritten",
        "Kontingent pro Minute überschritten",
        "Demasiadas solicitudes",
        "Limite de taxa excedido",
        "Troppe richieste",
        "Te veel verzoeken",
        "Zbyt wiele żądań",
        "Çok fazla istek",
        "Превышена частота запросов",
        "リクエストが多すぎます",
        "1分あたりのトークン上限を超えました",
        "분당 요청 한도를 초과했습니다",
        "請求過於頻繁，請稍後再試",
    ],
)
def test_a_rate_is_one_in_every_language_whatever_its_status(message: str) -> None:
    for status in (400, 429, 503):
        failure = failure_from(openai_error(status, message))

        assert (failure.type, failure.retryable) == (RATE, True), status


@pytest.mark.parametrize(
    "message",
    [
        "Le modèle est actuellement surchargé",
        "Der Server ist überlastet",
        "El servidor está sobrecargado",
        "Il server è sovraccarico",
        "Сервер перегружен",
        "サーバーが混み合っています",
        "서버가 과부하 상태입니다",
        "伺服器繁忙",
    ],
)
def test_load_is_load_in_every_language(message: str) -> None:
    for status in (429, 503):
        assert failure_from(openai_error(status, message)).type is BUSY, status


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("Le contexte est trop long", INPUT),
        ("Der Kontext überschreitet das Limit", INPUT),
        ("El prompt es demasiado largo", INPUT),
        ("Превышена максимальная длина контекста", INPUT),
        ("プロンプトが長すぎます", INPUT),
        ("컨텍스트 길이를 초과했습니다", INPUT),
        ("上下文長度超出限制", INPUT),
        ("La sortie dépasse la limite", OUTPUT),
        ("Die Ausgabe überschreitet das Limit", OUTPUT),
        ("출력 토큰 한도를 초과했습니다", OUTPUT),
    ],
)
def test_a_limit_of_tokens_has_its_phase_in_every_language(
    message: str, phase: TokenLimitPhase
) -> None:
    failure = failure_from(openai_error(400, message))

    assert (failure.type, failure.token_limit_phase) == (TOKENS, phase)


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Trop de requêtes, réessayez dans 45 secondes.", 45),
        ("Zu viele Anfragen. Bitte versuchen Sie es in 2 Minuten erneut.", 120),
        ("Zu viele Anfragen. In 5 Minuten erneut möglich.", 300),
        ("Demasiadas solicitudes. Intente de nuevo en 15 segundos", 15),
        ("Muitas solicitações. Tente novamente em 1 minuto e 20 segundos", 80),
        ("Troppe richieste. Riprova tra 30 secondi", 30),
        ("Слишком много запросов. Повторите через 1 час", 3_600),
        ("リクエストが多すぎます。1分30秒後に再試行してください。", 90),
        ("너무 많은 요청입니다. 2분 후에 다시 시도해 주세요", 120),
        ("請求過於頻繁，請於 20 秒後再試", 20),
        ("请求过于频繁，请1小时5分后再试", 3_900),
    ],
)
def test_a_wait_is_read_in_every_language(message: str, seconds: float) -> None:
    wait = failure_from(openai_error(429, message)).retry_after

    assert wait is not None
    assert wait.total_seconds() == seconds


@pytest.mark.parametrize(
    "message",
    [
        "Trop de requêtes : 10 requêtes par 60 secondes",
        "Anfragelimit von 10 in 60 Sekunden",
        "レート制限: 60秒間に10リクエストまで",
        "요청 제한: 60초당 10회",
    ],
)
def test_a_window_is_no_wait_in_any_language(message: str) -> None:
    assert failure_from(openai_error(429, message)).retry_after is None
