"""The field of all series of a test run, prepared once."""

from __future__ import annotations

import pytest

from mirror_assets_tests.kills.__main__ import tell
from mirror_assets_tests.kills.field import Field


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """Folders for series, and the times of a run that nobody kills."""
    return Field.prepared(tmp_path_factory.mktemp("kills"), tell)
