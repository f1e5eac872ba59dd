from pathlib import Path

import pytest

from app.settings import Settings
from tests.support.service import settings_for_tests


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_for_tests(tmp_path)
