"""Keys before year 1 and after 9999, which Python's dates can't hold: mirrored, and shown in messages."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, StopError
from mirror_assets.landing.format import SliceKind
from mirror_assets.pipeline.doctor import DoctorVerdict
from mirror_assets.pipeline.doctor_in_spark import keys_are_unique, spark_reads
from mirror_assets.pipeline.errors import ChecksFailed
from mirror_assets.pipeline.preview import landing_rows
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.verify.reconciliation import ReconcileState
from mirror_assets_tests.errors import raises
from mirror_assets_tests.lab import TABLE, Lab

_FAR = "make_date(12100, 4, 4), make_timestamp(12100, 4, 4, 1, 2, 3.5)"
_EARLY = "make_date(-221, 9, 4), make_timestamp(-221, 9, 4, 0, 0, 0)"
_SHOWN = "12100-04-04"


@pytest.fixture
def far(spark: SparkSession, tmp_path: Path) -> Lab:
    """Two rows whose keys are such a date and such a time."""
    made = Lab(spark, tmp_path)
    made.sql(
        "CREATE TABLE {t} (day DATE, at TIMESTAMP, name STRING) USING delta TBLPROPERTIES "
        "(delta.enableChangeDataFeed = true)",
        f"INSERT INTO {{t}} VALUES ({_FAR}, 'far'), ({_EARLY}, 'early')",
    )
    made.configure(keys="[day, at]")
    return made


@pytest.mark.parametrize("changes", ["feed", "files"])
def test_they_are_keys_like_others(far: Lab, changes: str) -> None:
    far.configure(f"changes: {changes}", keys="[day, at]")
    far.mirror()
    far.sql("UPDATE {t} SET name = 'x' WHERE name = 'far'", "DELETE FROM {t} WHERE name = 'early'")
    far.mirror()
    assert far.is_equal
    assert len(landing_rows(far.context, 5)) == 1


@pytest.mark.parametrize("changes", ["feed", "files"])
def test_a_repeated_key_is_named(far: Lab, changes: str) -> None:
    far.configure(f"changes: {changes}", keys="[day, at]")
    far.mirror()
    far.sql(
        f"INSERT INTO {{t}} VALUES ({_FAR.replace('12100', '12101')}, 'a'), ({_FAR.replace('12100', '12101')}, 'b')"
    )
    with pytest.raises(StopError, match="12101-04-04"):
        far.mirror()


def test_a_repeated_key_in_a_first_load_is_named(far: Lab) -> None:
    far.sql(f"INSERT INTO {{t}} VALUES ({_FAR}, 'again')")
    with raises(ChecksFailed, ErrorCode.CHECKS_FAILED, _SHOWN):
        far.mirror()
    answer = keys_are_unique(far.context, far.context.log.state(), thorough=True)
    assert _SHOWN in answer.words
    assert spark_reads(far.context, far.context.log.state()).verdict is DoctorVerdict.OK


def test_a_null_key_shows_the_other_keys_alone(far: Lab) -> None:
    far.mirror()
    far.sql("INSERT INTO {t} VALUES (make_date(12100, 4, 4), NULL, 'private words')")
    with raises(ChecksFailed, ErrorCode.CHECKS_FAILED, f"row 0 of .*parquet «day='{_SHOWN}'»") as failed:
        far.mirror()
    assert "private words" not in str(failed.value)


def test_differing_rows_are_named_and_repaired(far: Lab) -> None:
    far.mirror()
    far.replicator.poll()
    status = far.replicator.table(TABLE)
    assert status is not None
    DeltaTable(status.location).delete("name = 'far'")
    found = far.compare()
    assert found.state is ReconcileState.DIFFERENT
    assert [sample.key[0] for sample in found.samples] == [f"+{_SHOWN}"]
    said: list[str] = []
    repaired = repair_table(far.context, far.replicator, said.append)
    assert repaired is not None
    assert repaired.record.kind is SliceKind.REPAIR
    assert far.is_equal
