"""The comparison that other tests rely on: it applies markers, and fails on gaps, doubled and missing rows."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets_tests.landed_rows import difference, landed_rows, row

_INSERT, _UPDATE, _DELETE, _UPSERT = 0, 1, 2, 4


def _land(folder: Path, number: int, *rows: tuple[int, str | None, int], moved: bool = False) -> None:
    place = folder / "_ProcessedFiles" if moved else folder
    place.mkdir(parents=True, exist_ok=True)
    (folder / "_metadata.json").write_text(json.dumps({"keyColumns": ["id"]}))
    ids, names, markers = zip(*rows, strict=True)
    pq.write_table(pa.table({"id": ids, "name": names, "__rowMarker__": markers}), place / f"{number:020d}.parquet")


def test_markers_are_applied_in_the_order_of_the_files(tmp_path: Path) -> None:
    _land(tmp_path, 1, (1, "a", _INSERT), (2, "b", _INSERT), (3, "c", _INSERT), moved=True)
    _land(tmp_path, 2, (1, "A", _UPDATE), (2, None, _DELETE), (4, "d", _UPSERT), (9, None, _DELETE))
    assert landed_rows(tmp_path) == Counter([row(id=1, name="A"), row(id=3, name="c"), row(id=4, name="d")])


def test_an_insert_of_an_existing_key_makes_two_rows(tmp_path: Path) -> None:
    _land(tmp_path, 1, (1, "a", _INSERT))
    _land(tmp_path, 2, (1, "a", _INSERT))
    assert landed_rows(tmp_path) == Counter({row(id=1, name="a"): 2})
    shown = difference(Counter([row(id=1, name="a")]), landed_rows(tmp_path))
    assert shown == "the mirror lacks 0 rows [], and has besides 1 rows [{'id': 1, 'name': 'a'}]"


def test_a_gap_between_landing_files_fails(tmp_path: Path) -> None:
    _land(tmp_path, 1, (1, "a", _INSERT))
    _land(tmp_path, 3, (2, "b", _INSERT))
    with pytest.raises(AssertionError, match=r"\[1, 3\]"):
        landed_rows(tmp_path)


def test_values_are_equal_across_types_and_missing_ones_are_null() -> None:
    assert row(amount=Decimal("1.50"), info={"b": None, "a": 1}, more=None) == row(
        amount=Decimal("1.5"), info='{"a":1}'
    )
    assert row(name="1") != row(name=1)
    assert row(amount=1.0) != row(amount=2.0)
