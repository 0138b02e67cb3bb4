"""Whatever a machine, a cluster or another project sets, the same rows land, or the setting is refused by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.byte_settings import CONTEXT_SETTINGS, HADOOP, PINNED, ContextSetting
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


@pytest.mark.parametrize("setting", CONTEXT_SETTINGS[1:], ids=lambda setting: setting.name)
def test_what_no_session_can_change_is_refused_by_name(
    setting: ContextSetting, lake: HostileLake, tmp_path: Path
) -> None:
    name = setting.name.removeprefix(HADOOP)
    environment = write_configuration(tmp_path / "conf", {}, {name: hostile_values()[setting.name]})
    found = mirror_apart(lake, f"refused {name}", environment)
    assert isinstance(found, str)
    assert found.startswith(f"session_unfit: the Spark context has {setting.name}=")


@pytest.mark.soak
@pytest.mark.parametrize(("topic", "hostile"), list(cases(each=True)))
def test_each_setting_alone_changes_no_row(
    topic: str, hostile: dict[str, str], lake: HostileLake, expected: Rows, tmp_path: Path
) -> None:
    found = mirror_apart(lake, topic, write_configuration(tmp_path / "conf", hostile, {}))
    refused = topic in {setting.name for setting in CONTEXT_SETTINGS[1:]}
    assert isinstance(found, str) if refused else found == expected
