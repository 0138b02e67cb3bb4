"""Two code locations of one Dagster instance whose assets have the same keys are named."""

import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from mirror_assets.config import Config
from mirror_assets.config.load import parse_config
from mirror_assets.orchestration import shared_assets
from mirror_assets.orchestration.jobs import MIRROR_ALL
from mirror_assets.orchestration.shared_assets import SharedAssets

_HERE = {REPOSITORY_LABEL_TAG: "__repository__@here"}
_TABLES = "landing_zone: {path: ./zone}\ntables:\n  sales.orders: {source: ./orders, keys: [id]}\n"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test() as opened:
        yield opened


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return parse_config(_TABLES.encode(), tmp_path / "mirror.yaml", {})


def record(
    instance: dg.DagsterInstance, location: str, job_name: str, event: dg.AssetMaterialization | dg.AssetObservation
) -> None:
    """Record the event in a run of the code location."""

    @dg.op
    def write(context: dg.OpExecutionContext) -> None:
        context.log_event(event)

    @dg.job(name=job_name)
    def job() -> None:
        write()

    tags = {REPOSITORY_LABEL_TAG: f"__repository__@{location}"} if location else {}
    assert job.execute_in_process(instance=instance, tags=tags).success


def test_tables_of_the_same_name_are_reported_in_each_location(instance: dg.DagsterInstance, config: Config) -> None:
    for location in ("here", "there"):
        record(instance, location, MIRROR_ALL, dg.AssetMaterialization(["sales", "orders_landing"]))
    told = "both write events of the asset sales/orders_landing. Mirror them in separate Dagster instances"
    assert SharedAssets().message(instance, _HERE, config) == f"code locations here and there {told}"
    there = {REPOSITORY_LABEL_TAG: "__repository__@there"}
    assert SharedAssets().message(instance, there, config) == f"code locations there and here {told}"


def test_files_of_the_same_name_are_reported(instance: dg.DagsterInstance, config: Config) -> None:
    for location in ("there", "here"):
        record(instance, location, "checks", dg.AssetObservation("mirror_status"))
    assert SharedAssets().message(instance, _HERE, config) == (
        "code locations here and there both write events of the asset mirror_status. "
        "Give their configuration files different names"
    )


def test_other_tables_and_runs_of_the_command_line_are_not_reported(
    instance: dg.DagsterInstance, config: Config
) -> None:
    record(instance, "there", MIRROR_ALL, dg.AssetMaterialization(["sales", "customers_landing"]))
    record(instance, "", MIRROR_ALL, dg.AssetMaterialization(["sales", "orders_landing"]))
    assert SharedAssets().message(instance, _HERE, config) == ""


def test_the_message_ends_an_hour_after_the_last_event(
    instance: dg.DagsterInstance, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_assets, "_AGAIN_SECONDS", 0.0)
    shared = SharedAssets()
    record(instance, "there", MIRROR_ALL, dg.AssetMaterialization(["sales", "orders_landing"]))
    record(instance, "there", "checks", dg.AssetObservation("mirror_status"))
    assert shared.message(instance, _HERE, config)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 3700)
    assert shared.message(instance, _HERE, config) == ""
