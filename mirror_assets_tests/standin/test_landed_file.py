"""Each rule of a landing file, broken: the table fails, says which file and why, and goes on once it is replaced."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets.landing.names import landing_name
from mirror_assets.markers import ROW_MARKER
from mirror_assets.monitoring import TableState
from mirror_assets_tests.standin.publisher import Publisher, bag, pairs, parquet

_GOOD = pairs((1, "a"), (2, "b"))


def _marked(values: pa.Array) -> bytes:
    return parquet(_GOOD.append_column(ROW_MARKER, values))


def _damaged() -> bytes:
    """A footer that is fine, over a data page that is not what its checksum says."""
    sink = pa.BufferOutputStream()
    pq.write_table(pairs(*[(n, f"row {n}") for n in range(100)]), sink, compression="none", write_page_checksum=True)
    data = sink.getvalue().to_pybytes()
    return bytes(data.replace(b"row 50", b"row 5x"))


_BAD: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "empty": (lambda: b"", "file_empty", "0 bytes"),
    "no parquet": (lambda: b"hello", "file_invalid", "not a valid Parquet file"),
    "truncated": (lambda: parquet(_GOOD)[:-9], "file_invalid", "not a valid Parquet file"),
    "damaged page": (_damaged, "file_invalid", "not a valid Parquet file"),
    "marker 3": (lambda: _marked(pa.array([0, 3])), "marker_invalid", "values [3]"),
    "marker 5": (lambda: _marked(pa.array([5, 1])), "marker_invalid", "values [5]"),
    "marker negative": (lambda: _marked(pa.array([0, -1])), "marker_invalid", "values [-1]"),
    "marker NULL": (lambda: _marked(pa.array([0, None])), "marker_invalid", "NULL in 1 rows"),
    "marker text": (lambda: _marked(pa.array(["0", "1"])), "marker_invalid", "has type string"),
    "no key": (lambda: parquet(pa.table({"v": ["a"]})), "key_column_missing", "['k']"),
    "only markers": (lambda: parquet(pa.table({ROW_MARKER: [0]})), "file_invalid", "no data column"),
    "twice": (lambda: parquet(_GOOD.append_column("V", _GOOD["v"])), "column_repeated", "['V', 'v']"),
    "other case": (lambda: parquet(_GOOD.rename_columns(["k", "V"])), "column_repeated", "only by case"),
    "wider": (lambda: parquet(pa.table({"k": pa.array([1], pa.int32())})), "type_changed", "from int64 to int32"),
    "other type": (lambda: parquet(pa.table({"k": [1], "v": [1]})), "type_changed", "from string to int64"),
    "nested": (lambda: parquet(pa.table({"k": [1], "n": [[1]]})), "type_unsupported", "list"),
    "unsigned": (lambda: parquet(pa.table({"k": [1], "n": pa.array([1], pa.uint32())})), "type_unsupported", "uint32"),
    "untyped": (lambda: parquet(pa.table({"k": [1], "n": pa.nulls(1)})), "type_unsupported", "null"),
}


@pytest.mark.parametrize("case", _BAD)
def test_bad_file_stops_the_table_until_it_is_replaced(publisher: Publisher, case: str) -> None:
    make, code, why = _BAD[case]
    publisher.declare()
    publisher.land(1, _GOOD)
    publisher.land_bytes(2, make())
    publisher.land(3, pairs((3, "c")))
    status = publisher.poll()
    assert (status.state, status.error_code, status.applied_number) == (TableState.FAILED, code, 1)
    assert status.message is not None
    assert landing_name(2) in status.message
    assert why in status.message
    assert publisher.poll() == status, "the failure holds"
    publisher.land(2, pairs((9, "z")))
    after = publisher.poll()
    assert (after.state, after.error_code, after.message, after.applied_number) == (
        TableState.REPLICATING,
        None,
        None,
        3,
    )
    assert bag(publisher.rows()) == bag(pairs((1, "a"), (2, "b"), (9, "z"), (3, "c")))


def test_int96_timestamps_are_refused(publisher: Publisher) -> None:
    publisher.declare()
    sink = pa.BufferOutputStream()
    rows = pa.table({"k": [1], "at": pa.array([1], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, sink, use_deprecated_int96_timestamps=True)
    publisher.land_bytes(1, sink.getvalue().to_pybytes())
    assert publisher.poll().error_code == "type_unsupported"


@pytest.mark.parametrize("marker", [1, 2, 4])
def test_changes_need_declared_keys(publisher: Publisher, marker: int) -> None:
    publisher.declare(keys=None)
    publisher.land(1, _GOOD, [0, 0])
    publisher.land(2, _GOOD, [0, marker])
    status = publisher.poll()
    assert (status.error_code, status.applied_number) == ("marker_needs_keys", 1)
    publisher.declare(["k"])
    assert publisher.poll().applied_number == 2, "keys may be declared later, once"


def test_marker_counts_wherever_it_stands_and_whatever_its_width(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a"), (2, "b")))
    publisher.land(2, pa.table({"v": ["x", "y"], ROW_MARKER: pa.array([1, 2], pa.uint8()), "k": [1, 2]}))
    assert publisher.poll().state is TableState.REPLICATING
    assert bag(publisher.rows()) == bag(pairs((1, "x")))


def test_file_without_marker_is_all_inserts_even_of_present_keys(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pairs((1, "a")))
    publisher.poll()
    assert bag(publisher.rows()) == bag(pairs((1, "a"), (1, "a")))


def test_file_without_marker_is_all_upserts_where_that_is_declared(publisher: Publisher) -> None:
    publisher.declare(isUpsertDefaultRowMarker=True)
    publisher.land(1, pairs((1, "a"), (1, "b"), (2, "c")))
    publisher.land(2, pairs((2, "d")))
    publisher.poll()
    assert bag(publisher.rows()) == bag(pairs((1, "b"), (2, "d")))


def test_a_column_landed_not_null_cant_be_dropped(publisher: Publisher) -> None:
    required = pa.schema([("k", pa.int64()), pa.field("v", pa.string(), nullable=False)])
    publisher.declare()
    publisher.land(1, _GOOD.cast(required))
    publisher.land(2, pa.table({"k": [1]}), [2])
    publisher.land(3, pa.table({"k": [1]}), [4])
    status = publisher.poll()
    assert (status.error_code, status.applied_number) == ("schema_merge_failure", 2), "deletes need only keys"
    publisher.land(3, pairs((1, None)), [4])
    assert publisher.poll().error_code == "schema_merge_failure", "the rule outlives the poll that made the column"
    publisher.land(3, pairs((1, "c")), [4])
    assert publisher.poll().state is TableState.REPLICATING


def test_type_change_inside_one_poll_is_seen(publisher: Publisher) -> None:
    publisher.declare()
    publisher.land(1, pairs((1, "a")))
    publisher.land(2, pa.table({"k": [2], "new": [1]}))
    publisher.land(3, pa.table({"k": [3], "new": ["x"]}))
    status = publisher.poll()
    assert (status.error_code, status.applied_number, status.mirror_rows) == ("type_changed", 2, 2)
