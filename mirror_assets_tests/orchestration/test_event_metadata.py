"""The metadata of slices: columns, keys, comments; and which mirrored tables have an event. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from mirror_assets.config.load import load_config, parse_config
from mirror_assets.definitions import build_definitions
from mirror_assets.features.fabric.fabric_mirror import FabricTable
from mirror_assets.landing.format import CheckVerdict, Column, ComparedVersions, Manifest
from mirror_assets.landing.names import SliceKey, TableName
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.state import next_position
from mirror_assets.monitoring import TableState
from mirror_assets.orchestration.check_jobs import CHECKS
from mirror_assets.orchestration.event_metadata import (
    ChangedMirrors,
    Metadata,
    columns_metadata,
    landed_metadata,
    source_event,
    staged_metadata,
)
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.translator import AssetKind, asset_key
from mirror_assets_tests.landing.staging import INCARNATION, hex_id, new_record
from mirror_assets_tests.landing.test_format import MANIFEST
from mirror_assets_tests.pipeline.paper import TABLE, Paper
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase, reported_table
from mirror_assets_tests.worlds.fabric.interface import Answer
from mirror_assets_tests.worlds.fabric.loopback import Fault, LoopbackFabric


class Watched:
    """One table in Fabric, and its manifest."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        paper = Paper(folder)
        paper.create()
        for version in (1, 2, 3):
            paper.commit(version, version)
        paper.cover(3)
        self.assets = MirrorAssets(paper.config)
        self.manifest = paper.context.manifest()
        synced = datetime(2026, 11, 28, tzinfo=timezone.utc)
        self.status = FabricTable(
            TABLE, TableState.REPLICATING, None, None, 9, 1, synced, True, 0, None, None, "abfss://x"
        )

    def events(self) -> int:
        """Record the event, if there is one, as a run does; return how many there are."""
        event = ChangedMirrors(self.instance, self.assets).event(self.status, self.manifest)
        if event is None:
            return 0
        self.instance.report_runless_asset_event(event)
        return 1

    def change(self, **changes: object) -> None:
        """Change the status."""
        self.status = replace(self.status, **changes)  # type: ignore[arg-type]

    def change_manifest(self, **changes: object) -> None:
        """Change the manifest."""
        assert self.manifest is not None
        self.manifest = self.manifest.model_copy(update=changes)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield Watched(tmp_path, instance)


@pytest.mark.parametrize("has_landed", [True, False])
def test_nothing_is_recorded_while_nothing_changes(watched: Watched, *, has_landed: bool) -> None:
    watched.manifest = watched.manifest if has_landed else None
    assert [watched.events() for _ in range(4)] == [1, 0, 0, 0]


_CHANGES: dict[str, Callable[[Watched], None]] = {
    "state": lambda one: one.change(state=TableState.FAILED),
    "rows": lambda one: one.change(processed_rows=10),
    "epoch": lambda one: one.change_manifest(epoch=2),
    "version": lambda one: one.change_manifest(covered=4),
    "columns": lambda one: one.change_manifest(columns=(Column(name="other", type="string"),)),
}


@pytest.mark.parametrize("change", _CHANGES.values(), ids=_CHANGES)
def test_a_change_is_recorded_once(watched: Watched, change: Callable[[Watched], None]) -> None:
    assert watched.events() == 1
    change(watched)
    assert [watched.events() for _ in range(3)] == [1, 0, 0]


def test_times_and_files_that_wait_are_no_change(watched: Watched) -> None:
    assert watched.events() == 1
    assert watched.status.last_sync is not None
    watched.change(processed_bytes=77, waiting_files=2, last_sync=watched.status.last_sync + timedelta(hours=1))
    watched.change_manifest(covered=4)
    assert watched.events() == 0, "version 4 is not applied yet"
    watched.change(waiting_files=0)
    assert watched.events() == 1


def test_a_manifest_that_can_not_be_read_is_read_again(watched: Watched) -> None:
    assert watched.events() == 1
    watched.change_manifest(covered=4)
    known, watched.manifest = watched.manifest, None
    assert [watched.events(), watched.events()] == [0, 0]
    watched.manifest = known
    assert [watched.events(), watched.events()] == [1, 0]


@pytest.mark.parametrize("text", ["", "7", "Replicating", "0123abcd"])
def test_an_event_with_another_data_version_is_followed_by_one(watched: Watched, text: str) -> None:
    key = asset_key(AssetKind.MIRROR, TABLE)
    other = dg.AssetMaterialization(key, tags={"dagster/data_version": text} if text else None)
    watched.instance.report_runless_asset_event(other)
    assert [watched.events(), watched.events()] == [1, 0]


_SYNCED = "2026-11-21T05:07:11Z"


class Observed:
    """A database in Fabric, and the runs of `checks` that ask it."""

    def __init__(self, database: LoopbackDatabase, instance: dg.DagsterInstance) -> None:
        self.database, self.instance = database, instance
        self.definitions = build_definitions(load_config())

    def check(self, rows: int) -> list[dg.DagsterEvent]:
        """Run `checks` with this status of the table; return the materializations of mirrors, and all results."""
        tables = [
            reported_table("shop", "orders", processedRows=rows, lastSyncDateTime=_SYNCED),
            reported_table("shop", "orphan"),
        ]
        self.database.tables = lambda: tables
        job = self.definitions.resolve_job_def(CHECKS)
        run = job.execute_in_process(instance=self.instance, raise_on_error=False).run_id
        events = [entry.dagster_event for entry in self.instance.all_logs(run) if entry.dagster_event]
        recorded = (dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        found = [event for event in events if event.event_type in recorded]
        status = dg.AssetKey("mirror_status")
        return [event for event in found if event.asset_key != status]


@pytest.fixture
def observed(database: LoopbackDatabase) -> Iterator[Observed]:
    database.state = "Running"
    with dg.instance_for_test() as instance:
        yield Observed(database, instance)


def test_a_table_in_fabric_that_has_changed_is_recorded_with_its_checks(observed: Observed) -> None:
    first, *checks = observed.check(12)
    assert first.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
    assert first.asset_key == asset_key(AssetKind.MIRROR, TableName("shop", "orders"))
    metadata = {name: value.value for name, value in first.materialization.metadata.items()}
    assert (metadata["state"], metadata["processed_rows"]) == ("Replicating", 12)
    assert metadata["last_sync"] == datetime(2026, 11, 21, 5, 7, 11, tzinfo=timezone.utc).timestamp()
    place = load_config().mirror_place
    assert place is not None
    assert str(metadata["mirror"]).startswith(f"{place.tables}/")
    assert not {"applied_number", "dagster/row_count"} & set(metadata)
    results = [event.asset_check_evaluation_data for event in checks]
    assert "replicating" in {found.check_name for found in results if found.asset_key == first.asset_key}
    for rows, is_new in ((12, False), (13, True)):
        assert any(one.is_step_materialization for one in observed.check(rows)) is is_new


def test_a_fabric_that_can_not_be_asked_changes_nothing(observed: Observed, fabric: LoopbackFabric) -> None:
    assert observed.check(12)
    refused = Answer.refusal(429, "RequestBlocked", **{"Retry-After": "3600"})
    fabric.faults.append(Fault("getTablesMirroringStatus", refused))
    materialized = [one for one in observed.check(13) if one.is_step_materialization]
    assert not materialized
    assert [one for one in observed.check(13) if one.is_step_materialization]


_LONG = "every " * 1000


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    made = Paper(tmp_path)
    fields = [
        Field("id", PrimitiveType("long"), nullable=True, metadata={"comment": "The order's number"}),
        Field("placed", PrimitiveType("date"), nullable=False, metadata={"comment": _LONG}),
        Field("note", PrimitiveType("string"), nullable=True),
        Field("odd", PrimitiveType("string"), nullable=True, metadata={"comment": 7}),
    ]
    DeltaTable.create(made.lake, Schema(fields), configuration={"delta.enableChangeDataFeed": "true"})
    return made


def _landed(paper: Paper, names: Sequence[str], keys: tuple[str, ...] = ("id",)) -> Manifest:
    """The manifest of landing files with these columns."""
    columns = tuple(Column(name=name, type="string") for name in names)
    schema = paper.context.log.state().schema_string
    return MANIFEST.model_copy(update={"source_schema": schema, "keys": keys, "columns": columns})


def _columns(metadata: Metadata) -> dict[str, dg.TableColumn]:
    schema = metadata["dagster/column_schema"]
    found = schema.value if isinstance(schema, dg.TableSchemaMetadataValue) else schema
    assert isinstance(found, dg.TableSchema)
    return {column.name: column for column in found.columns}


def test_the_source_has_key_marks_nullability_and_comments(paper: Paper) -> None:
    state = paper.context.log.state()
    found = _columns(source_event(MirrorAssets(paper.config), paper.context, state, SliceKey(1, 0, 0), 0).metadata)
    assert found["id"].description == "The order's number"
    assert found["id"].constraints == dg.TableColumnConstraints(nullable=False, unique=True, other=["key"])
    assert found["placed"].constraints == dg.TableColumnConstraints(nullable=False)
    assert found["note"].constraints == dg.TableColumnConstraints()
    assert (found["note"].description, found["odd"].description) == (None, None)
    assert len(found["placed"].description or "") == 200, "each event repeats it"


def test_landing_files_hold_changes_so_that_only_keys_are_never_null(paper: Paper) -> None:
    landed = Published(Outcome.COVERED, _landed(paper, ["id", "placed"]))
    found = _columns(landed_metadata(MirrorAssets(paper.config), paper.context, landed))
    assert found["id"].constraints == dg.TableColumnConstraints(nullable=False, other=["key"])
    assert found["placed"].constraints == dg.TableColumnConstraints(), "a DELETE has its key alone"


def test_the_mirror_has_them_as_the_source_had_at_the_landed_version(paper: Paper) -> None:
    landed = _landed(paper, ["id", "placed", "note", "gone"], keys=("id", "note"))
    found = _columns(columns_metadata(MirrorAssets(paper.config), AssetKind.MIRROR, TABLE, landed))
    assert found["id"].description == "The order's number"
    assert found["id"].constraints == dg.TableColumnConstraints(nullable=False, other=["key"]), "half a key repeats"
    assert found["gone"].constraints == dg.TableColumnConstraints(), "a column that the source has dropped"


def test_a_computed_column_comes_from_all_columns_that_it_uses(paper: Paper) -> None:
    both = "{sql: \"concat(`odd`, PLACED, 'note')\", type: string}"
    paper = replace(paper, settings=f"columns: {{note: 'left(note, 2)', both: {both}}}")
    landed = _landed(paper, ["id", "placed", "note", "odd", "both"])
    assets = MirrorAssets(paper.config)
    metadata = landed_metadata(assets, paper.context, Published(Outcome.COVERED, landed))
    lineage = metadata["dagster/column_lineage"]
    assert isinstance(lineage, dg.TableColumnLineage)
    found = {name: [dep.column_name for dep in deps] for name, deps in lineage.deps_by_column.items()}
    assert found == {"id": ["id"], "placed": ["placed"], "note": ["note"], "odd": ["odd"], "both": ["odd", "placed"]}


def test_the_cost_on_onelake_is_that_of_a_landing_zone_on_onelake(paper: Paper) -> None:
    landed = _landed(paper, [])
    url = "https://onelake.dfs.fabric.microsoft.com/{0}/{0}/Files/LandingZone".format(
        "11111111-2222-3333-4444-555555555555"
    )
    text = f"landing_zone: {{onelake: {{url: '{url}'}}}}\ntables: {{{TABLE}: {{source: ./lake, keys: [id]}}}}\n"
    onelake = parse_config(text.encode(), paper.root / "mirror.yaml", {})
    cost = {"onelake_requests", "onelake_cu_seconds"}
    for config, names in ((paper.config, set()), (onelake, cost)):
        metadata = landed_metadata(MirrorAssets(config), paper.context, Published(Outcome.LANDED, landed))
        assert cost & metadata.keys() == names


def test_a_staged_slice_names_commits_that_are_unproved_or_read_by_files() -> None:
    position = next_position(None, epoch=1, incarnation=INCARNATION)
    record = new_record(position, SliceKey(1, 3, 5), hex_id("one"), ())
    assert not {"commits_unproved", "commits_by_files"} & staged_metadata(record).keys()
    verdict = CheckVerdict(check="row_conservation", passed=True, etags=(), unproved=2)
    compared = ComparedVersions(before=2, last=5, files=1, bytes=1, because="the feed was off")
    noted = record.model_copy(update={"verdicts": (verdict,), "compared": compared})
    metadata = staged_metadata(noted)
    assert (metadata["commits_unproved"], metadata["commits_by_files"]) == (2, 3)
