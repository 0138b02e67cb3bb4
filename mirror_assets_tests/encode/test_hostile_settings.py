"""Whatever a machine, a cluster or another project sets, the same rows land, or the setting is refused by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.byte_settings import CONTEXT_SETTINGS, HADOOP, PINNED
from mirror_assets_tests.encode.hostile_lake import HostileLake
from mirror_assets_tests.encode.hostile_settings import (
    HARMLESS,
    Rows,
    cases,
    hostile_values,
    mirror_apart,
    write_configuration,
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> HostileLake:
    """The lake, made by an ordinary session."""
    made = HostileLake(tmp_path_factory.mktemp("hostile"))
    made.make(spark)
    return made


@pytest.fixture(scope="module")
def expected(lake: HostileLake) -> Rows:
    """The rows that land with an ordinary session."""
    return lake.mirror("ordinary")


def test_each_setting_has_a_hostile_value() -> None:
    hostile = hostile_values()
    assert hostile.keys() == PINNED.keys() | {setting.name for setting in CONTEXT_SETTINGS}
    assert not [name for name, value in hostile.items() if value == PINNED.get(name)]
    assert not HARMLESS.keys() & hostile.keys()


@pytest.mark.long(60)
def test_all_settings_flipped_on_the_machine_change_no_row(lake: HostileLake, expected: Rows, tmp_path: Path) -> None:
    hostile = {name: value for name, value in hostile_values().items() if name in PINNED} | HARMLESS
    hadoop = {name.removeprefix(HADOOP): hostile.pop(name) for name in list(hostile) if name.startswith(HADOOP)}
    found = mirror_apart(lake, "hostile", write_configuration(tmp_path / "conf", hostile, hadoop))
    assert found == expected


def test_what_no_session_can_change_is_refused_by_name(lake: HostileLake, tmp_path: Path) -> None:
    # The older name of Hadoop's path filter.
    hadoop = {"mapred.input.pathFilter.class": "org.apache.hadoop.mapred.OutputLogFilter"}
    found = mirror_apart(lake, "refused", write_configuration(tmp_path / "conf", {}, hadoop))
    assert isinstance(found, str)
    assert found.startswith("session_unfit: the Spark context has spark.hadoop.mapreduce.input.pathFilter.class=")


@pytest.mark.soak
@pytest.mark.parametrize(("topic", "hostile"), list(cases(each=True)))
def test_each_setting_alone_changes_no_row(
    topic: str, hostile: dict[str, str], lake: HostileLake, expected: Rows, tmp_path: Path
) -> None:
    found = mirror_apart(lake, topic, write_configuration(tmp_path / "conf", hostile, {}))
    # A context that we start has the coordination of commits switched on, whatever the machine says.
    refused = topic == "spark.hadoop.mapreduce.input.pathFilter.class"
    assert isinstance(found, str) if refused else found == expected
