r"""What the words of a failure mean, as tables read from top to bottom; the first match decides.

The order is the knowledge. Reasons that name one cause come first. Money and plans come before
rates, because an exhausted quota is also sent as 429; rates come before tokens, because "tokens
per minute" is a rate; capacity comes before bare statuses, because it is sent as 429, 500 and 503.

Patterns see the words in the one form of `failure_words`. They take linear time: no repetition
inside a repetition, and gaps are bounded (`.{0,40}`).
"""

from app.providers.failure_languages import (
    LOAD_ABROAD,
    MONEY_ABROAD,
    RATES_ABROAD,
    TOKENS_ABROAD,
    WINDOWS_ABROAD,
)
from app.providers.failure_limits import LOAD, MONEY, RATES, WINDOWS
from app.providers.failure_service import (
    ACCESS,
    CAPACITY,
    FIRST,
    NETWORK,
    PASSING,
    REQUEST,
    SCHEMA,
    VAGUE,
)
from app.providers.failure_tokens import TOKENS

WORD_RULES = (
    *FIRST,
    *WINDOWS,
    *WINDOWS_ABROAD,
    *MONEY,
    *MONEY_ABROAD,
    *LOAD,
    *LOAD_ABROAD,
    *RATES,
    *RATES_ABROAD,
    *TOKENS,
    *TOKENS_ABROAD,
    *CAPACITY,
    *REQUEST,
    *ACCESS,
    *NETWORK,
)
"""They decide before the status does."""

BROAD_RULES = (*SCHEMA, *PASSING)
"""They decide where the status is one that says little: 400, 422, 5xx, none."""

LAST_RULES = VAGUE
"""They decide where there is no status at all, or a 200."""
