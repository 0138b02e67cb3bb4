"""The definitions that Dagster loads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster_shared.serdes import serialize_value

import mirror_assets
from mirror_assets.config.load import load_config, parse_config
from mirror_assets.definitions import build_definitions, defs, jobs_first
from mirror_assets.orchestration.jobs import MIRROR_TABLE, REBUILD, build_jobs
from mirror_assets.orchestration.mirror_assets import MirrorAssets

_CONFIG = "landing_zone: {path: ./landing}\ntables:\n  shop.orders: {source: ./orders, keys: [id]}\n"


@pytest.fixture(autouse=True)
def instance() -> Iterator[dg.DagsterInstance]:
    """One that lives: Dagster may remember that of another test, where it keeps the state of definitions."""
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mirror.yaml of the process."""
    path = tmp_path / "mirror.yaml"
    path.write_text(_CONFIG, encoding="utf-8")
    monkeypatch.setenv("MIRROR_CONFIG", str(path))
    return path


def _tables(definitions: dg.Definitions) -> list[str]:
    """Return the tables that both jobs of one table can be launched for."""
    found = [definitions.resolve_job_def(job).partitions_def for job in (MIRROR_TABLE, REBUILD)]
    mirrored, rebuilt = [list(keys.get_partition_keys()) for keys in found if keys is not None]
    assert mirrored == rebuilt
    return mirrored


def test_definitions_are_built_once_for_a_configuration(config: Path) -> None:
    built = defs()
    assert defs() is built
    config.write_text(_CONFIG.replace("orders", "items"), encoding="utf-8")
    assert _tables(defs()) == ["shop.items"]
    assert _tables(built) == ["shop.orders"]


_RUN = """
import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from mirror_assets import definitions
repository = ReconstructableRepository.for_module("mirror_assets.definitions", "defs")
with dg.DagsterInstance.ephemeral() as instance:
    result = dg.execute_job(repository.get_reconstructable_job("replicate"), instance)
    print(result.success, len(definitions._NEWEST))
    print(repository.get_reconstructable_job("__ASSET_JOB").get_definition().name, len(definitions._NEWEST))
"""


def test_the_process_of_a_run_makes_what_its_job_needs(config: Path) -> None:
    config.write_text(f"mirror: {{path: ./mirror}}\n{_CONFIG}", encoding="utf-8")
    run = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=True, cwd=config.parent)
    assert run.stdout.split() == ["True", "0", "__ASSET_JOB", "1"]


def test_the_definitions_of_a_run_are_those_of_the_code_server(config: Path) -> None:
    loaded = load_config(config)
    whole = build_definitions(loaded).get_repository_def()
    lazy = jobs_first(lambda: build_jobs(MirrorAssets(loaded)), lambda: build_definitions(loaded))
    assert all(lazy.get_job(job.name).name == job.name for job in whole.get_all_jobs())
    assert not lazy.has_job("another")
    assert serialize_value(RepositorySnap.from_def(lazy)) == serialize_value(RepositorySnap.from_def(whole))


@pytest.mark.usefixtures("config")
def test_a_launchpad_asks_for_nothing_but_what_is_to_be_done() -> None:
    for job in defs().resolve_all_job_defs():
        if job.name.startswith("__"):
            continue
        asked = job.run_config_schema.config_type
        assert isinstance(asked, dg.Shape)
        resources = asked.fields["resources"].config_type if "resources" in asked.fields else None
        assert not isinstance(resources, dg.Shape) or not any(_asks(field) for field in resources.fields.values())


def _asks(resource: dg.Field) -> bool:
    """Whether a resource has settings of its own in a run's configuration."""
    assert isinstance(resource.config_type, dg.Shape)
    return isinstance(resource.config_type.fields["config"].config_type, dg.Shape)


def test_definitions_load_nothing_that_their_settings_do_not_need() -> None:
    """Each start of a command, a run and a code server pays for it."""
    code = "import sys, mirror_assets.definitions; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "mirror_assets" in loaded
    assert not {"azure", "opentelemetry.sdk", "obstore"} & set(loaded)


def test_every_public_name_is_there() -> None:
    assert [name for name in mirror_assets._PUBLIC if not hasattr(mirror_assets, name)] == []


def test_several_mirrors_are_merged_from_a_file_a_mapping_and_a_model(config: Path, tmp_path: Path) -> None:
    mapping = {"landing_zone": {"path": tmp_path / "b"}, "tables": {"b.orders": {"source": "b", "keys": ["id"]}}}
    model = parse_config(_CONFIG.replace("shop", "c").encode(), tmp_path / "c.yaml", {})
    own = dg.Definitions(assets=[dg.AssetSpec("own")])
    of_file = mirror_assets.build_definitions(mirror_assets.load_config(str(config)), name="a")
    merged = dg.Definitions.merge(
        own, of_file, build_definitions(mapping, name="b"), build_definitions(model, name="c")
    )
    jobs = {job.name for job in merged.get_repository_def().get_all_jobs()}
    assert {"a_all", "b_all", "c_all", "b_rebuild"} <= jobs
    keys = {key.to_user_string() for key in merged.resolve_asset_graph().get_all_asset_keys()}
    assert {"own", "shop/orders_landing", "b/orders_landing", "c/orders_landing", "a_status"} <= keys


def test_a_variable_that_is_not_set_fails_the_run_and_not_the_definitions(config: Path) -> None:
    config.write_text(_CONFIG.replace("./landing", "'${LANDING}'"), encoding="utf-8")
    with dg.DagsterInstance.ephemeral() as instance:
        result = (
            build_definitions(config)
            .resolve_job_def("mirror_all")
            .execute_in_process(instance=instance, raise_on_error=False)
        )
    (failed,) = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    assert "mirror.yaml:1: landing_zone.path: the environment variable LANDING is not set" in str(failed)
