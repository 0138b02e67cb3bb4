"""A source whose feed or row tracking is off: the statement, and what it does to the table."""

from __future__ import annotations

import pytest

from mirror_assets.config.setting_values import Changes
from mirror_assets.pipeline.errors import not_recorded
from mirror_assets.source.actions import Protocol


@pytest.mark.parametrize(
    ("protocol", "consequence"),
    [
        (Protocol(1, 2), "protocol from writer version 2 to 7, with the table feature changeDataFeed: writers that"),
        (Protocol(3, 7, frozenset({"deletionVectors"})), "protocol, with the table feature changeDataFeed: writers"),
        (Protocol(1, 4), "writer version 4 doesn't change"),
        (Protocol(1, 7, frozenset({"changeDataFeed"})), "writer version 7 doesn't change"),
    ],
)
def test_the_error_of_a_disabled_feed_names_the_statement_and_its_consequences(
    protocol: Protocol, consequence: str
) -> None:
    told = not_recorded("shop.orders", "/lake/orders", protocol, Changes.FEED).next_step
    assert "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)" in told
    assert consequence in told
    assert "The feed begins with that commit" in told
    assert "spark.databricks.delta.properties.defaults.enableChangeDataFeed = true" in told


def test_the_error_of_disabled_row_tracking_names_the_statement_and_its_cost() -> None:
    told = not_recorded("shop.orders", "/lake/orders", Protocol(3, 7), Changes.ROW_TRACKING).next_step
    assert "ALTER TABLE delta.`/lake/orders` SET TBLPROPERTIES (delta.enableRowTracking = true)" in told
    assert "in several commits, which can take long" in told
    assert "upgrades the table's protocol, which disabling row tracking doesn't undo" in told
