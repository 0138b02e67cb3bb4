"""The set-based application against a model that applies one row after the other."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_assets.markers import Marker
from mirror_assets_tests.standin.publisher import Publisher, Value, bag, rows_bag

_TYPES = {"a": pa.int64(), "b": pa.string(), "v": pa.float64(), "w": pa.int64()}
_KEYS = ("a", "b")
Row = dict[str, Value]


@dataclass(frozen=True)
class Operation:
    marker: Marker
    row: Row


@dataclass(frozen=True)
class File:
    """A landing file: its columns, its operations, whether it has a marker column, whether a poll follows."""

    columns: tuple[str, ...]
    operations: tuple[Operation, ...]
    marked: bool
    poll: bool


@dataclass
class Model:
    """The mirror as Microsoft's text describes it, one row at a time."""

    rows: list[Row] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)

    def apply(self, file: File) -> None:
        self.columns += [name for name in file.columns if name not in self.columns]
        for operation in file.operations:
            if operation.marker != Marker.INSERT:
                key = [operation.row[name] for name in _KEYS]
                self.rows = [row for row in self.rows if [row[name] for name in _KEYS] != key]
            if operation.marker != Marker.DELETE:
                self.rows.append(operation.row)

    def all_columns(self) -> list[Row]:
        return [{name: row.get(name) for name in self.columns} for row in self.rows]


_values = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
_rows = st.fixed_dictionaries(
    {
        "a": st.sampled_from([None, 1, 2]),
        "b": st.sampled_from([None, "", "x"]),
        "v": _values,
        "w": st.none() | st.integers(0, 3),
    }
)


@st.composite
def _files(draw: st.DrawFn) -> File:
    columns = draw(st.sampled_from([("a", "b", "v"), ("v", "b", "a", "w"), ("b", "a", "w"), ("a", "b")]))
    marked = draw(st.booleans())
    markers = st.sampled_from(list(Marker)) if marked else st.just(Marker.INSERT)
    drawn = draw(st.lists(st.tuples(markers, _rows), max_size=8))
    operations = tuple(Operation(marker, {name: row[name] for name in columns}) for marker, row in drawn)
    return File(columns, operations, marked, draw(st.booleans()))


def _table(file: File) -> pa.Table:
    rows = [operation.row for operation in file.operations]
    return pa.table({name: pa.array([row[name] for row in rows], _TYPES[name]) for name in file.columns})


@settings(max_examples=60, deadline=None)
@given(files=st.lists(_files(), min_size=1, max_size=6))
def test_any_files_at_any_poll_moments_give_the_rows_of_the_model(files: Sequence[File]) -> None:
    model = Model()
    with tempfile.TemporaryDirectory() as folder:
        publisher = Publisher(Path(folder))
        publisher.declare(_KEYS)
        for number, file in enumerate(files, start=1):
            markers = [operation.marker for operation in file.operations] if file.marked else None
            publisher.land(number, _table(file), markers)
            model.apply(file)
            if file.poll:
                publisher.poll()
        status = publisher.poll()
        assert status.message is None
        assert bag(publisher.rows()) == rows_bag(model.all_columns())
        assert status.mirror_rows == len(model.rows)
        assert status.processed_rows == sum(len(file.operations) for file in files)


@pytest.mark.parametrize(
    ("history", "left"),
    [
        ([(0, "a"), (0, "b")], ["a", "b"]),
        ([(0, "a"), (0, "b"), (1, "c")], ["c"]),
        ([(1, "a"), (0, "b"), (0, "c")], ["a", "b", "c"]),
        ([(0, "a"), (2, None), (0, "b")], ["b"]),
        ([(0, "a"), (2, None)], []),
        ([(2, None)], []),
        ([(1, "a")], ["a"]),
        ([(4, "a"), (4, "b")], ["b"]),
        ([(4, "a"), (2, None), (4, "b"), (0, "c")], ["b", "c"]),
    ],
)
@pytest.mark.parametrize("one_file", [True, False])
def test_one_key_after_each_history(
    publisher: Publisher, history: list[tuple[int, str | None]], left: list[str], one_file: bool
) -> None:
    publisher.declare()
    parts = [history] if one_file else [[step] for step in history]
    for number, part in enumerate(parts, start=1):
        rows = pa.table({"k": pa.array([1] * len(part)), "v": pa.array([value for _, value in part], pa.string())})
        publisher.land(number, rows, [marker for marker, _ in part])
    publisher.poll()
    assert sorted(publisher.rows()["v"].to_pylist()) == left
