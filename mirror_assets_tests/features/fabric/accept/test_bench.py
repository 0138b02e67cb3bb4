"""A mirrored table is read as Fabric writes it, and its differences are named."""

from __future__ import annotations

from pathlib import Path
from typing import cast
from uuid import uuid4

import pyarrow as pa
import pytest

from mirror_assets.errors import RetryError
from mirror_assets.features.fabric.accept.bench import Differs, ExerciseBench, FabricService, MirroredTable, Patience
from mirror_assets.features.fabric.client import FabricClient
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.landing.names import TableName
from mirror_assets.zones import LocalStore
from mirror_assets.zones.errors import STORE_UNAVAILABLE
from mirror_assets_tests.handmade_table import HandmadeTable, commit_info, features, hidden
from mirror_assets_tests.source.handmade import column

_NAME = TableName(None, "t")


@pytest.fixture
def service(tmp_path: Path) -> FabricService:
    """Tables of this machine; no request is sent to Fabric."""
    return FabricService(LocalStore(tmp_path), cast("FabricClient", None), uuid4(), str(tmp_path), "dbo", PlainAccess)


def test_deletion_vectors_and_column_mapping_are_read(service: FabricService, tmp_path: Path) -> None:
    table = HandmadeTable(
        tmp_path / "dbo" / "t",
        column("id", "long", mapped=(1, "col-1")),
        column("größe in m", "string", mapped=(2, "col-2")),
        configuration={"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"},
        protocol=features("deletionVectors", "columnMapping"),
    )
    add = table.add({"id": 1, "größe in m": "a"}, {"id": 2, "größe in m": "b"}, {"id": 3, "größe in m": "c"})
    table.commit(commit_info(), hidden(add, 1))
    found = service.mirrored(_NAME)
    assert found.types == {"id": "bigint", "größe in m": "string"}
    assert [dict(row) for row in found.rows] == [{"id": 1, "größe in m": "a"}, {"id": 3, "größe in m": "c"}]


def test_without_a_table_no_column_is_there(service: FabricService) -> None:
    assert service.mirrored(_NAME) == MirroredTable({}, ())


def test_differences_name_missing_and_unexpected_rows() -> None:
    expected = pa.table({"id": [1, 2, 2], "value": ["a", "b", "b"]})
    same = MirroredTable({}, ({"id": 2, "value": "b"}, {"id": 1, "value": "a"}, {"id": 2, "value": "b"}))
    assert same.differences(expected) == ""
    other = MirroredTable({}, ({"id": 1.0, "value": "a"}, {"id": 2, "value": "b" * 100}))
    found = other.differences(expected)
    assert found.startswith("2 rows instead of 3, missing: id=1, value='a'; id=2, value='b', unexpected: id=1.0, ")
    assert "… (102 characters)" in found


def test_an_error_that_lasts_is_raised_and_one_that_ends_is_not(service: FabricService) -> None:
    seconds = iter(range(100))
    bench = ExerciseBench(service, Patience(3.0, 0.0, lambda: float(next(seconds))), "x")
    errors = [STORE_UNAVAILABLE(path="p", why="busy"), STORE_UNAVAILABLE(path="p", why="busy")]

    def busy_at_first() -> str:
        if errors:
            raise errors.pop()
        return ""

    def busy() -> str:
        raise STORE_UNAVAILABLE(path="p", why="busy")

    assert bench.wait("first", busy_at_first) == ""
    assert bench.steps == {"first": 3.0}
    with pytest.raises(RetryError, match="busy"):
        bench.require("second", busy)
    with pytest.raises(Differs, match="third: left"):
        bench.require("third", lambda: "left")
