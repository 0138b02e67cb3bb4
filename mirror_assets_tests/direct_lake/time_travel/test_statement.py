"""Points as SQL; that Delta takes it is shown by the tests of plans on real tables."""

from __future__ import annotations

from mirror_assets.direct_lake.sql import table_at
from mirror_assets.direct_lake.time_travel.statement import as_of, select_as_of
from mirror_assets.source.ranges import TimePoint, VersionPoint


def test_a_version_and_a_time_are_deltas_clauses() -> None:
    assert as_of(VersionPoint(2)) == "VERSION AS OF 2"
    assert as_of(TimePoint(1_714_295_700_000)) == "TIMESTAMP AS OF '2024-04-28T09:15:00.000Z'"
    assert as_of(TimePoint(1_714_295_700_042)) == "TIMESTAMP AS OF '2024-04-28T09:15:00.042Z'"


def test_a_statement_names_the_table_first() -> None:
    assert select_as_of("Inventory", VersionPoint(2)) == "SELECT * FROM Inventory VERSION AS OF 2"
    there = select_as_of(table_at("/lake/a`b"), TimePoint(0))
    assert there == "SELECT * FROM delta.`/lake/a``b` TIMESTAMP AS OF '1970-01-01T00:00:00.000Z'"
