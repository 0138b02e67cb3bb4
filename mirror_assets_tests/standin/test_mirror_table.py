"""The mirror's Delta table: its counters are in its log, it stays small, and files change it as row by row would."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_assets.markers import Marker
from mirror_assets.standin.landed_file import first_columns
from mirror_assets.standin.mirror_table import Applied, MirrorTable, NetChanges
from mirror_assets_tests.standin.publisher import Publisher, Value, bag, pairs, rows_bag

_COLUMNS = first_columns(pairs((1, "a")).schema)
_ONE_ROW = NetChanges(pairs().select([]), pairs((1, "a")))


def test_counters_are_read_back_from_the_log_and_its_checkpoints(publisher: Publisher) -> None:
    path = publisher.mirror / "dbo" / "t"
    mirror = MirrorTable(path, "epoch")
    assert (mirror.exists, mirror.applied, mirror.columns, mirror.rows) == (False, Applied(), None, 0)
    for number in (1, 2):
        mirror.apply(_ONE_ROW, _COLUMNS, Applied(number, number * 10, number * 100))
    publisher.delta().create_checkpoint()
    (path / "_delta_log" / f"{0:020d}.json").unlink()
    again = MirrorTable(path, "epoch")
    assert (again.exists, again.applied, again.rows) == (True, Applied(2, 20, 200), 2)
    assert again.columns == _COLUMNS


def test_another_epoch_is_no_table(publisher: Publisher) -> None:
    path = publisher.mirror / "dbo" / "t"
    MirrorTable(path, "epoch").apply(_ONE_ROW, _COLUMNS, Applied(1, 1, 1))
    assert not MirrorTable(path, "next").exists
    assert MirrorTable(path, "next").applied == Applied()


def test_small_files_are_merged_now_and_then(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mirror_assets.standin.mirror_table._TIDY_EVERY", 5)
    publisher.declare()
    for number in range(1, 6):
        publisher.land(number, pairs((number, "a")))
        publisher.poll()
    assert len(publisher.files()) == 1
    assert bag(publisher.rows()) == bag(pairs(*[(number, "a") for number in range(1, 6)]))
    publisher.land(6, pairs((2, None)), [2])
    assert publisher.poll().mirror_rows == 4


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
    "values",
    [
        pa.array([1, 2, None], pa.int8()),
        pa.array(["", "a", None]),
        pa.array([b"", b"\x00", None]),
        pa.array([Decimal("0.00"), Decimal("-1.00"), None], pa.decimal128(38, 2)),
        pa.array([date(1, 1, 1), date(2000, 1, 1), None]),
        pa.array(
            [datetime(1, 1, 1, tzinfo=timezone.utc), datetime(2000, 1, 1, tzinfo=timezone.utc), None],
            pa.timestamp("us", "UTC"),
        ),
        pa.array([datetime(1, 1, 1), datetime(2000, 1, 1), None], pa.timestamp("us")),  # noqa: DTZ001, without zone on purpose
        pa.array([True, False, None]),
    ],
    ids=lambda values: str(values.type),
)
@pytest.mark.parametrize("key", [["k"], ["k", "j"]])
def test_key_of_any_simple_type(publisher: Publisher, values: pa.Array, key: list[str]) -> None:
    same = pa.array(["x"] * 3)
    publisher.declare(key)
    publisher.land(1, pa.table({"k": values, "j": same, "v": ["a", "b", "c"]}))
    publisher.poll()
    publisher.land(2, pa.table({"k": values, "j": same, "v": ["d", None, "e"]}), [1, 2, 4])
    publisher.poll()
    left = pa.table({"k": values.take(pa.array([0, 2])), "j": same[:2], "v": ["d", "e"]})
    assert bag(publisher.rows()) == bag(left)


def test_keys_declared_later_over_rows_without_them(publisher: Publisher) -> None:
    publisher.declare(None)
    publisher.land(1, pa.table({"v": ["old"]}))
    publisher.poll()
    publisher.declare(["k"])
    publisher.land(2, pa.table({"k": pa.array([None, 1], pa.int64()), "v": ["null", "one"]}), [1, 4])
    publisher.poll()
    assert bag(publisher.rows()) == bag(pa.table({"v": ["null", "one"], "k": pa.array([None, 1], pa.int64())}))


def test_a_file_that_changes_no_row_counts_as_applied(publisher: Publisher) -> None:
    """Delta's merge makes no commit then, and without the counters the file would be read at each poll."""
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pa.table({"k": [2], "new": [1.5]}))
    assert publisher.poll().mirror_rows == 2
    assert publisher.rows().schema.names == ["k", "v", "new"]
    publisher.land(3, pairs((9, None)), [2])
    status = publisher.poll()
    assert (status.applied_number, status.processed_rows, status.mirror_rows) == (3, 3, 2)
