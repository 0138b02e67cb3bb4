"""What Dagster's table of columns says: keys, nullability and the source's comments. No Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from mirror_assets.config.load import parse_config
from mirror_assets.landing.format import CheckVerdict, Column, ComparedVersions
from mirror_assets.landing.names import SliceKey
from mirror_assets.landing.publish import Outcome, Published
from mirror_assets.landing.state import next_position
from mirror_assets.orchestration.mirror_assets import MirrorAssets
from mirror_assets.orchestration.slice_metadata import (
    Metadata,
    landed_metadata,
    mirrored_columns,
    source_event,
    staged_metadata,
)
from mirror_assets_tests.landing.staging import INCARNATION, hex_id, new_record
from mirror_assets_tests.landing.test_format import MANIFEST
from mirror_assets_tests.pipeline.paper import TABLE, Paper

_LONG = "every " * 1000


def _create(paper: Paper) -> None:
    fields = [
        Field("id", PrimitiveType("long"), nullable=True, metadata={"comment": "The order's number"}),
        Field("placed", PrimitiveType("date"), nullable=False, metadata={"comment": _LONG}),
        Field("note", PrimitiveType("string"), nullable=True),
        Field("odd", PrimitiveType("string"), nullable=True, metadata={"comment": 7}),
    ]
    DeltaTable.create(paper.lake, Schema(fields), configuration={"delta.enableChangeDataFeed": "true"})


def _columns(metadata: Metadata) -> dict[str, dg.TableColumn]:
    schema = metadata["dagster/column_schema"]
    found = schema.value if isinstance(schema, dg.TableSchemaMetadataValue) else schema
    assert isinstance(found, dg.TableSchema)
    return {column.name: column for column in found.columns}


@pytest.fixture
def paper(tmp_path: Path) -> Paper:
    made = Paper(tmp_path)
    _create(made)
    return made


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
    columns = tuple(Column(name=name, type="string") for name in ("id", "placed"))
    state = paper.context.log.state()
    landed = MANIFEST.model_copy(update={"source_schema": state.schema_string, "keys": ("id",), "columns": columns})
    found = _columns(landed_metadata(MirrorAssets(paper.config), paper.context, Published(Outcome.COVERED, landed)))
    assert found["id"].constraints == dg.TableColumnConstraints(nullable=False, other=["key"])
    assert found["placed"].constraints == dg.TableColumnConstraints(), "a DELETE has its key alone"


def test_the_mirror_has_them_as_the_source_had_at_the_landed_version(paper: Paper) -> None:
    columns = tuple(Column(name=name, type="string") for name in ("id", "placed", "note", "gone"))
    landed = MANIFEST.model_copy(
        update={"source_schema": paper.context.log.state().schema_string, "keys": ("id", "note"), "columns": columns}
    )
    found = _columns(mirrored_columns(MirrorAssets(paper.config), TABLE, landed))
    assert found["id"].description == "The order's number"
    assert found["id"].constraints == dg.TableColumnConstraints(nullable=False, other=["key"]), "half a key repeats"
    assert found["gone"].constraints == dg.TableColumnConstraints(), "a column that the source has dropped"


def test_a_computed_column_comes_from_all_columns_that_it_uses(paper: Paper) -> None:
    both = "{sql: \"concat(`odd`, PLACED, 'note')\", type: string, comment: Two}"
    paper = replace(paper, settings=f"columns: {{note: 'left(note, 2)', both: {both}}}")
    columns = tuple(Column(name=name, type="string") for name in ("id", "placed", "note", "odd", "both"))
    landed = MANIFEST.model_copy(
        update={"source_schema": paper.context.log.state().schema_string, "keys": ("id",), "columns": columns}
    )
    assets = MirrorAssets(paper.config)
    metadata = landed_metadata(assets, paper.context, Published(Outcome.COVERED, landed))
    lineage = metadata["dagster/column_lineage"]
    assert isinstance(lineage, dg.TableColumnLineage)
    found = {name: [dep.column_name for dep in deps] for name, deps in lineage.deps_by_column.items()}
    assert found == {"id": ["id"], "placed": ["placed"], "note": ["note"], "odd": ["odd"], "both": ["odd", "placed"]}
    assert _columns(metadata)["both"].description == "Two"
    assert _columns(mirrored_columns(assets, TABLE, landed))["both"].description == "Two"


def test_the_cost_on_onelake_is_that_of_a_landing_zone_on_onelake(paper: Paper) -> None:
    schema = paper.context.log.state().schema_string
    landed = MANIFEST.model_copy(update={"source_schema": schema, "keys": ("id",), "columns": ()})
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
