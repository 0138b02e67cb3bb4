"""When figures of a table are worth a warning."""

from __future__ import annotations

import pytest

from mirror_assets.config import DirectLakeMode
from mirror_assets.direct_lake.check_rules import WantedCapacity, check_guardrails
from mirror_assets.direct_lake.guardrails import Growth, GuardrailFigures, sku_of

_F2 = WantedCapacity(sku_of("F2"), DirectLakeMode.ONELAKE)


def _figures(files: int = 500, rows: int = 1000, hidden: int = 0, growth: Growth | None = None) -> GuardrailFigures:
    return GuardrailFigures("orders", files, files, rows, hidden, 10**6, growth)


@pytest.mark.parametrize(("days", "files_a_day", "warns"), [(7, 100, True), (7, 50, False), (0.5, 100, False)])
def test_a_limit_that_growth_reaches_within_a_week_is_a_warning(days: float, files_a_day: float, warns: bool) -> None:
    result = check_guardrails(_figures(growth=Growth(files_a_day, None, 0, days, 10)), _F2)
    assert result.passed is not warns
    assert ("the limit is 5.0 days away" in result.message) is warns
    assert result.is_warning is warns


def test_what_is_not_known_is_a_warning() -> None:
    result = check_guardrails(_figures(rows=300_000_000, hidden=1), _F2)
    assert result.is_warning
    assert result.message.endswith("it is unknown whether hidden rows count")


def test_without_a_capacity_the_smallest_is_named() -> None:
    result = check_guardrails(_figures(files=6_000), WantedCapacity(None, DirectLakeMode.ONELAKE))
    assert result.passed
    assert result.note == "orders: it fits into F512"
    assert result.figures["smallest_sku"] == "F512"
