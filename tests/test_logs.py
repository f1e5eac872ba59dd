"""What log lines hold, and what they never do."""

from typing import Literal

import pytest
import structlog
from pydantic import TypeAdapter

from tests.http.rig import logging_as_served

SECRET = "what somebody said"


@pytest.mark.parametrize("form", ["console", "json"])
def test_a_fault_is_told_by_its_kinds_and_places_and_not_by_its_words(
    capsys: pytest.CaptureFixture[str], form: Literal["console", "json"]
) -> None:
    log = structlog.get_logger("app.somewhere")
    with logging_as_served(form):
        try:
            _refuse()
        except RuntimeError:
            log.exception("tool_crashed", turn_id="t1")

    told = capsys.readouterr().err
    assert "tool_crashed" in told
    assert "builtins.RuntimeError" in told
    assert "pydantic_core._pydantic_core.ValidationError" in told
    assert "_refuse" in told
    assert SECRET not in told


def _refuse() -> None:
    """Raises: RuntimeError, whose words and whose cause's words are not for the log."""
    try:
        TypeAdapter(int).validate_python(SECRET)
    except ValueError as error:
        raise RuntimeError(str(error)) from error
