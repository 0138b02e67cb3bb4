"""What a failed run tells the sensor through its tags."""

from __future__ import annotations

import dagster as dg
import pytest

from mirror_assets.assets.names import FAILED_SLICE_TAG, REBUILD_TAG
from mirror_assets.assets.slices import mark_failed
from mirror_assets.delta.losses import DataFileMissing, FeedMissing, HistoryExpired
from mirror_assets.delta.spark_errors import RowIdsUnfit
from mirror_assets.errors import MirrorError
from mirror_assets.landing.errors import LifeEnded, LostRace
from mirror_assets.landing.format import Chunk, Loading
from mirror_assets.mirroring.errors import SnapshotLost, SourceBroke
from mirror_assets_tests.lab import key

ONLY_A_RUN_SEES = (
    DataFileMissing("shop.orders", "lake", "2.parquet", 2),
    HistoryExpired("shop.orders", "lake", 2, 200.0),
    FeedMissing("shop.orders", "lake", 2),
    RowIdsUnfit("shop.orders", 3),
    SnapshotLost("shop.orders", Loading(key(0, 2), Chunk(number=1, of=3, first=0, end=1)), "vacuumed"),
)
OTHERS = (SourceBroke("shop.orders", 4, "renamed"), LifeEnded("shop.orders", 1), LostRace("shop.orders", "1"))


def tags_after(error: MirrorError) -> dict[str, str]:
    """Our tags of a run that this error has ended."""
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = dg.GraphDefinition("nothing").execute_in_process(instance=instance).run_id
        mark_failed(instance, run_id, key(1, 2), error)
        run = instance.get_run_by_id(run_id)
        assert run is not None
        return {name: value for name, value in run.tags.items() if name in (FAILED_SLICE_TAG, REBUILD_TAG)}


@pytest.mark.parametrize("error", ONLY_A_RUN_SEES, ids=lambda error: type(error).__name__)
def test_what_only_reading_shows_asks_for_a_rebuild(error: MirrorError) -> None:
    assert tags_after(error) == {FAILED_SLICE_TAG: str(key(1, 2)), REBUILD_TAG: error.what}


@pytest.mark.parametrize("error", OTHERS, ids=lambda error: type(error).__name__)
def test_what_the_sensor_sees_for_itself_asks_for_nothing(error: MirrorError) -> None:
    assert tags_after(error) == {FAILED_SLICE_TAG: str(key(1, 2))}
