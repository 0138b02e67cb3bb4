"""Runs that follow their sources, without Spark: how often they try, what they log, when they end, and for what."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from mirror_assets.config.load import parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.errors import ErrorCode, MirrorError, StopError
from mirror_assets.feature import SliceCheck
from mirror_assets.landing.names import PARTNER_EVENTS, TableName
from mirror_assets.landing.run_records import read_failure
from mirror_assets.orchestration import mirror_tables, resident
from mirror_assets.orchestration.jobs import TABLES_OP, MirrorTables
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL, MirrorAssets
from mirror_assets.orchestration.resident import FollowSources, code_mark
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets.pipeline.context import TableContext
from mirror_assets.pipeline.leases import has_runs
from mirror_assets.pipeline.scheduler import Scheduler
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_DENIED
from mirror_assets_tests.orchestration.mirrors import assets_of


@dataclass
class Mirrored:
    """Two tables with a commit that has not landed; to mirror one raises the errors of `failures`, in turn."""

    root: Path
    instance: dg.DagsterInstance
    failures: list[MirrorError] = field(default_factory=list)
    attempts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        for name in "ab":
            write_deltalake(
                self.root / name, pa.table({"id": [1]}), configuration={"delta.enableChangeDataFeed": "true"}
            )
        text = "landing_zone: {path: ./zone}\ntables: {a: {source: ./a, keys: [id]}, b: {source: ./b, keys: [id]}}\n"
        self.config = parse_config(text.encode(), self.root / "mirror.yaml", {})
        self.store = LocalStore(self.root / "zone")

    def mirror(self, context: TableContext, *_: object, **__: object) -> list[object]:
        """Stand in for `mirror_table`."""
        name = str(context.name)
        self.attempts[name] += 1
        raise self.failures[min(self.attempts[name], len(self.failures)) - 1]

    def follow(self, seconds: float) -> dg.ExecuteInProcessResult:
        """Run the job for this long."""
        follow = FollowSources(every_seconds=0.05, minutes=seconds / 60, batch=0, code="code")
        config = dg.RunConfig(ops={TABLES_OP: MirrorTables(follow=follow)})
        job = build_definitions(self.config).resolve_job_def(MIRROR_ALL)
        return job.execute_in_process(instance=self.instance, run_config=config, raise_on_error=False)

    def errors(self, run: str) -> list[str]:
        """Return the errors that the run logged."""
        return [
            entry.user_message for entry in self.instance.all_logs(run) if entry.level == 40 and not entry.dagster_event
        ]


@pytest.fixture
def mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirrored]:
    monkeypatch.setattr(mirror_tables.TableRuns, "start_spark", lambda _: None)
    with dg.instance_for_test() as instance:
        made = Mirrored(tmp_path, instance)
        monkeypatch.setattr(mirror_tables, "mirror_table", made.mirror)
        yield made


def stopped(code: ErrorCode) -> MirrorError:
    return StopError("a key is NULL.", "delete the row.", code=code)


def test_a_failure_that_the_landing_zone_cannot_record_pauses_the_table(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: 92 attempts a table in 75 seconds, while the disk was read-only."""

    real = LocalStore.create

    def refuse(store: LocalStore, path: str, data: bytes) -> str:
        if path == PARTNER_EVENTS:  # which is written when the zone is opened
            return real(store, path, data)
        raise STORE_DENIED(path=path, why="read-only")

    monkeypatch.setattr(LocalStore, "create", refuse)
    mirrored.failures = [STORE_DENIED(path="_scratchPad", why="read-only")]
    assert not mirrored.follow(3.0).success
    assert mirrored.attempts == {"a": 1, "b": 1}
    assert read_failure(mirrored.store, TableName(None, "a")) is None


def test_an_error_of_a_table_is_logged_once_until_its_code_changes(
    mirrored: Mirrored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mirror_assets.pipeline.next_action.failure_pause", lambda *_: 0.0)
    same, other = stopped(ErrorCode.CHECKS_FAILED), stopped(ErrorCode.ROWS_CHANGED)
    mirrored.failures = [same, same, same, other]
    result = mirrored.follow(4.0)
    assert mirrored.attempts["a"] > 4
    assert len(mirrored.errors(result.run_id)) == 4, "two for each table"


def test_a_resident_run_ends_when_its_hours_are_over_though_commits_wait(mirrored: Mirrored) -> None:
    mirrored.failures = [stopped(ErrorCode.CHECKS_FAILED)]
    result = mirrored.follow(1.0)
    messages = [entry.user_message for entry in mirrored.instance.all_logs(result.run_id)]
    assert "the run ends: its 0 minutes are over" in messages
    assert not has_runs(mirrored.store)


@pytest.mark.parametrize(
    ("minutes", "has_long_turns", "ends"),
    [(239, False, False), (241, False, True), (241, True, False), (301, True, True)],
)
def test_a_run_ends_by_itself_between_slices(
    monkeypatch: pytest.MonkeyPatch, minutes: float, *, has_long_turns: bool, ends: bool
) -> None:
    """Seen: after four hours, a run waited for another to take over, which waited in Dagster's queue."""
    monkeypatch.setattr(Scheduler, "has_long_turns", has_long_turns)
    following, began = FollowSources(every_seconds=2, minutes=240, batch=0), time.monotonic() - minutes * 60
    for is_idle in (True, False):
        reason = resident._reason_to_end(following, None, Scheduler(1), began, is_idle=is_idle)
        assert (reason is not None) is ends


ORDERS, LINES = TableName(None, "orders"), TableName(None, "lines")


def test_other_tables_settings_and_assets_are_other_definitions() -> None:
    marks = {code_mark(assets_of(tables)) for tables in ([ORDERS], [LINES], [ORDERS, LINES])}
    marks.add(code_mark(assets_of([ORDERS], "keys: [id], where: 'id > 3'")))

    class Elsewhere(MirrorAssets):
        def key(self, kind: AssetKind, table: TableName) -> dg.AssetKey:
            return super().key(kind, table).with_prefix("elsewhere")

    marks.add(code_mark(Elsewhere(assets_of([ORDERS]).config)))
    assert len(marks) == 5


@pytest.mark.parametrize("variable", ["AZURE_CLIENT_SECRET", "SHOP_TOKEN"])
def test_other_credentials_are_other_definitions_and_other_variables_are_not(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """A variable counts by its prefix, or because a setting is its name."""
    tables = [TableName(None, "SHOP_TOKEN")]
    loaded = code_mark(assets_of(tables))
    monkeypatch.setenv("HOSTNAME", "another")
    assert code_mark(assets_of(tables)) == loaded
    monkeypatch.setenv(variable, "another")
    assert code_mark(assets_of(tables)) != loaded


def test_other_code_of_a_check_of_the_project_is_another_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    digests = set[str]()
    for text in ("", "# longer"):
        (tmp_path / "checks_of_a_project.py").write_text(f"def none(_):\n    return ()\n{text}")
        problems = importlib.import_module("checks_of_a_project").none
        assets = assets_of([ORDERS])
        config = assets.config.with_features([SliceCheck("ours", "One of ours.", problems)])
        resident._code.cache_clear()
        digests |= {code_mark(replace(assets, config=config))}
    assert len(digests) == 2


def test_other_code_is_another_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "_PACKAGE", tmp_path)
    digests = set[str]()
    for text in ("1", "12"):
        (tmp_path / "a.py").write_text(text)
        digests |= {resident._code.__wrapped__(())}
    assert len(digests) == 2
