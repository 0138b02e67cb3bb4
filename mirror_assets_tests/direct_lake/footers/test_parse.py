"""Facts of real files against what was written into them, and against what pyarrow itself says."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.direct_lake.footers.facts import Coding, Footers
from mirror_assets_tests.direct_lake.footers.files import age, named, read, write

_ROWS = 6_000
_IDS = pa.array(range(_ROWS), pa.int64())
_TABLE = pa.table(
    {
        "id": _IDS,
        "few": pa.array([None if i % 10 == 0 else f"name {i % 7}" for i in range(_ROWS)]),
        "flag": pa.array([i % 2 == 0 for i in range(_ROWS)]),
        "share": pa.array([i / 7 for i in range(_ROWS)]),
        "whole": pa.array([i % 5 for i in range(_ROWS)], pa.int32()),
    }
)
Chunks = dict[tuple[int, str], dict[str, object]]


def _chunks(footers: Footers) -> Chunks:
    """The chunks of one file by row group and column."""
    return {(row["group"], row["column"]): row for row in footers.chunks.to_pylist()}


def _codings(footers: Footers) -> dict[str, Coding]:
    """How the columns of the first row group are stored."""
    return {column: Coding(str(chunk["coding"])) for (group, column), chunk in _chunks(footers).items() if group == 0}


def _assert_as_pyarrow_says(folder: Path, footers: Footers) -> None:
    for index, file in enumerate(footers.files):
        metadata = pq.read_metadata(folder / file.path)
        assert (file.rows, file.created_by) == (metadata.num_rows, metadata.created_by)
        assert [group.rows for group in file.groups] == [
            metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
        ]
        rows = footers.chunks.filter(pc.equal(footers.chunks["file"], index)).to_pylist()
        told = iter(rows)
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            assert file.groups[i].uncompressed == group.total_byte_size
            for chunk, row in ((group.column(j), next(told)) for j in range(group.num_columns)):
                assert (row["group"], row["column"]) == (i, chunk.path_in_schema)
                assert (row["compressed"], row["uncompressed"]) == (
                    chunk.total_compressed_size,
                    chunk.total_uncompressed_size,
                )
                assert row["nulls"] == chunk.statistics.null_count
        assert next(told, None) is None


def _assert_dictionaries_hold_the_values(folder: Path, footers: Footers) -> None:
    """Entries of a chunk that is stored by dictionary alone are its different values."""
    for index, file in enumerate(footers.files):
        content = pq.ParquetFile(folder / file.path)
        for row in footers.chunks.filter(pc.equal(footers.chunks["file"], index)).to_pylist():
            if row["coding"] == Coding.DICTIONARY.value:
                values = content.read_row_group(row["group"], columns=[row["column"]])[row["column"]]
                assert row["entries"] == pc.count_distinct(values).as_py(), row
            elif row["coding"] == Coding.PLAIN.value:
                assert row["entries"] is None


def test_arrows_cpp_writer(tmp_path: Path) -> None:
    folder = tmp_path / "cpp"
    write(folder, "a.parquet", _TABLE, row_group_size=2_500, dictionary_pagesize_limit=4_000)
    write(folder, "b.parquet", _TABLE.slice(0, 9), use_dictionary=["id"])
    footers = read(folder)
    _assert_as_pyarrow_says(folder, footers)
    _assert_dictionaries_hold_the_values(folder, footers)
    first = Footers(footers.table.slice(0, 1))
    assert _codings(first) == {
        "id": Coding.MIXED,
        "few": Coding.DICTIONARY,
        "flag": Coding.PLAIN,
        "share": Coding.MIXED,
        "whole": Coding.DICTIONARY,
    }
    assert _codings(Footers(footers.table.slice(1)))["few"] is Coding.PLAIN


def test_arrows_rust_writer_of_delta_rs(tmp_path: Path) -> None:
    properties = WriterProperties(
        max_row_group_size=2_500,
        dictionary_page_size_limit=4_000,
        data_page_row_count_limit=500,
        write_batch_size=100,
        column_properties={"whole": ColumnProperties(dictionary_enabled=False)},
    )
    write_deltalake(tmp_path, _TABLE, writer_properties=properties)
    footers = read(tmp_path)
    _assert_as_pyarrow_says(tmp_path, footers)
    _assert_dictionaries_hold_the_values(tmp_path, footers)
    assert _codings(footers) == {
        "id": Coding.MIXED,
        "few": Coding.DICTIONARY,
        "flag": Coding.PLAIN,
        "share": Coding.MIXED,
        "whole": Coding.PLAIN,
    }


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_parquet_mr_of_spark(spark: SparkSession, tmp_path: Path, version: str) -> None:
    rows = spark.range(0, _ROWS, 1, 1).selectExpr(
        "id", "concat('name ', id % 7) few", "id % 2 = 0 flag", "if(id < 4000, 0, id) later"
    )
    options = {"parquet.dictionary.page.size": "4000", "parquet.page.size": "8000", "parquet.writer.version": version}
    rows.write.options(**options).parquet(str(tmp_path / "mr"))
    footers = read(tmp_path / "mr")
    assert footers.files[0].created_by.startswith("parquet-mr")
    _assert_as_pyarrow_says(tmp_path / "mr", footers)
    _assert_dictionaries_hold_the_values(tmp_path / "mr", footers)
    # It gives a dictionary up for good when that doesn't pay on the first page.
    plain, by_dictionary = Coding.PLAIN, Coding.DICTIONARY
    assert _codings(footers) == {"id": plain, "few": by_dictionary, "flag": plain, "later": Coding.MIXED}


@pytest.mark.parametrize("offset", [b"", b"\x26\x00"])
def test_dictionaries_of_old_parquet_mr_that_tells_no_offset_of_them(tmp_path: Path, offset: bytes) -> None:
    write(tmp_path, "a.parquet", _TABLE.select(["few", "whole"]), version="1.0", compression="snappy")
    age(tmp_path / "a.parquet", offset)
    assert pq.read_table(tmp_path / "a.parquet").num_rows == _ROWS
    footers = read(tmp_path)
    assert footers.files[0].created_by.startswith("parquet-mr")
    assert _codings(footers) == {"few": Coding.DICTIONARY, "whole": Coding.DICTIONARY}
    _assert_dictionaries_hold_the_values(tmp_path, footers)


def test_times_in_every_unit_are_bounded_in_microseconds(tmp_path: Path) -> None:
    day, late = date(1969, 12, 30), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
    rows = pa.table(
        {
            "day": pa.array([day, date(2024, 2, 29)]),
            "us": pa.array([late, None], pa.timestamp("us", "UTC")),
            "ms": pa.array([1_500, -1_500], pa.timestamp("ms")),
            "ns": pa.array([1_999, -1_999], pa.timestamp("ns")),
            "number": pa.array([1, 2]),
        }
    )
    write(tmp_path, "a.parquet", rows)
    bounds = {column: (c["least_us"], c["most_us"]) for (_, column), c in _chunks(read(tmp_path)).items()}
    last = 253_402_300_799_999_999
    assert bounds == {
        "day": (-2 * 86_400_000_000, 19_782 * 86_400_000_000),
        "us": (last, last),
        "ms": (-1_500_000, 1_500_000),
        "ns": (-2, 2),  # rounded away from what it might leave out
        "number": (None, None),
    }


def test_times_that_no_microseconds_reach_have_no_bounds(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "day": pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32()),
            "ms": pa.array([-(2**63), 0], pa.timestamp("ms")),
            "us": pa.array([0, 2**63 - 1], pa.timestamp("us")),
        }
    )
    write(tmp_path, "a.parquet", rows)
    bounds = {column: (c["least_us"], c["most_us"]) for (_, column), c in _chunks(read(tmp_path)).items()}
    assert bounds == {"day": (None, None), "ms": (None, None), "us": (0, 2**63 - 1)}


def test_int96_timestamps_have_no_bounds(tmp_path: Path) -> None:
    rows = pa.table({"at": pa.array([datetime(2024, 1, 1)], pa.timestamp("ns"))})  # noqa: DTZ001
    write(tmp_path, "a.parquet", rows, use_deprecated_int96_timestamps=True)
    (chunk,) = _chunks(read(tmp_path)).values()
    assert (chunk["physical_type"], chunk["least_us"]) == ("INT96", None)


def test_vorder_is_told_file_by_file_and_copies_of_the_schema_are_left_out(tmp_path: Path) -> None:
    marked = {"com.microsoft.parquet.vorder.enabled": "true", "com.microsoft.parquet.vorder.level": "9"}
    write(tmp_path, "a.parquet", _TABLE.replace_schema_metadata(marked))
    write(tmp_path, "b.parquet", _TABLE)
    footers = read(tmp_path)
    assert [file.vorder for file in footers.files] == [True, False]
    assert [dict(values) for values in footers.table["key_values"].to_pylist()] == [marked, {}]


def test_a_file_without_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE.slice(0, 0))
    footers = read(tmp_path)
    assert (footers.files[0].rows, footers.chunks.num_rows) == (0, len(footers.row_groups) * _TABLE.num_columns)


def test_a_footer_longer_than_the_first_read(tmp_path: Path) -> None:
    wide = pa.table({f"column {i} {'x' * 80}": [i] for i in range(1_500)})
    write(tmp_path, "a.parquet", wide)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    assert metadata.serialized_size > 256 * 1024
    footers = read(tmp_path)
    _assert_as_pyarrow_says(tmp_path, footers)
    assert [f.path for f in named(tmp_path)] == [f.path for f in footers.files]


def test_dictionaries_before_the_tail_are_read_where_they_are(tmp_path: Path) -> None:
    texts = pa.table({"few": [f"n{i % 3}" for i in range(50_000)], "long": [f"{i:0200}" for i in range(50_000)]})
    write(tmp_path, "a.parquet", texts, compression="none", use_dictionary=["few"])
    assert named(tmp_path)[0].bytes > 4 * 256 * 1024
    assert _chunks(read(tmp_path))[0, "few"]["entries"] == 3
