"""When figures of a table are worth a warning."""

from __future__ import annotations

import pytest

from mirror_assets.audit.direct_lake_rules import Wanted, check_guardrails
from mirror_assets.direct_lake.guardrails.figures import TableFigures
from mirror_assets.direct_lake.guardrails.growth import Growth
from mirror_assets.direct_lake.guardrails.skus import Mode, sku_of

_F2 = Wanted(sku_of("F2"), Mode.ONELAKE, 10)


def _figures(files: int = 500, rows: int | None = 1000, growth: Growth | None = None) -> TableFigures:
    return TableFigures("orders", files, files, rows, None if rows is None else 0, 10**6, growth)


@pytest.mark.parametrize(("days", "files_a_day", "warns"), [(7, 100, True), (7, 50, False), (0.5, 100, False)])
def test_a_limit_that_growth_reaches_within_a_week_is_a_warning(days: float, files_a_day: float, warns: bool) -> None:
    result = check_guardrails(_figures(growth=Growth(files_a_day, None, None, days, 10)), _F2)
    assert result.passed is not warns
    assert ("the limit is 5.0 days away" in result.message) is warns
    assert result.is_warning is warns


def test_what_is_not_known_is_a_warning() -> None:
    result = check_guardrails(_figures(rows=None), _F2)
    assert result.is_warning
    assert result.message.endswith("whether it fits can't be told")


def test_without_a_capacity_the_smallest_is_named() -> None:
    result = check_guardrails(_figures(files=6_000), Wanted(None, Mode.ONELAKE, 10))
    assert result.passed
    assert result.note == "orders: it fits into F512"
    assert result.figures["smallest_sku"] == "F512"


def test_a_mirror_that_can_not_be_predicted_passes_with_a_note() -> None:
    result = check_guardrails(None, _F2)
    assert result.passed
    assert "nothing can be predicted" in result.note
