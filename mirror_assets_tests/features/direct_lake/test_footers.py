"""Footers of real files against what was written into them, and against what pyarrow reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from pyspark.sql import SparkSession

from mirror_assets.features.direct_lake.footers import Coding, Footers, dictionary_size
from mirror_assets_tests.features.direct_lake.parquet_files import age, named, read, write

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


def _first_chunks(footers: Footers) -> dict[str, dict[str, object]]:
    """Return the chunks of the first row group by column."""
    chunks = footers.chunks.to_pylist()
    return {row["column"]: row for row in chunks[: len(set(footers.chunks["column"].to_pylist()))]}


def _codings(footers: Footers) -> dict[str, Coding]:
    """Return how the columns of the first row group are stored."""
    return {column: Coding(str(chunk["coding"])) for column, chunk in _first_chunks(footers).items()}


def _assert_correct(folder: Path, footers: Footers, whole: Sequence[str] = ()) -> None:
    """Compare with pyarrow's metadata, and the entries of dictionaries with the values of the chunk.

    They are equal for chunks that use a dictionary alone, which those of the `whole` columns do.
    """
    for index, file in enumerate(footers.files):
        content = pq.ParquetFile(folder / file.path)
        metadata = content.metadata
        assert (file.rows, file.created_by) == (metadata.num_rows, metadata.created_by)
        assert file.group_rows == [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        rows = footers.chunks.filter(pc.equal(footers.chunks["file"], index)).to_pylist()
        chunks = [
            (i, metadata.row_group(i).column(j))
            for i in range(metadata.num_row_groups)
            for j in range(metadata.num_columns)
        ]
        for row, (group, chunk) in zip(rows, chunks, strict=True):
            name = chunk.path_in_schema
            sizes = (row["compressed"], row["uncompressed"])
            assert (row["column"], row["nulls"]) == (name, chunk.statistics.null_count)
            assert sizes == (chunk.total_compressed_size, chunk.total_uncompressed_size)
            if row["coding"] == Coding.PLAIN.value:
                assert row["entries"] is None
            elif row["coding"] == Coding.DICTIONARY.value or name in whole:
                values = content.read_row_group(group, columns=[name])[name]
                assert row["entries"] == pc.count_distinct(values).as_py(), row


def test_arrows_cpp_writer(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE, row_group_size=2_500, dictionary_pagesize_limit=4_000)
    write(tmp_path, "b.parquet", _TABLE.slice(0, 9), use_dictionary=["id"])
    footers = read(tmp_path)
    _assert_correct(tmp_path, footers, ["few", "whole"])
    first = Footers(footers.table.slice(0, 1))
    # It lists the encoding of dictionary pages among those of data pages.
    assert _codings(first) == dict.fromkeys(_TABLE.column_names, Coding.UNKNOWN) | {"flag": Coding.PLAIN}
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
    _assert_correct(tmp_path, footers, ["few"])
    plain = {"flag": Coding.PLAIN, "whole": Coding.PLAIN}
    assert _codings(footers) == dict.fromkeys(_TABLE.column_names, Coding.UNKNOWN) | plain


@pytest.mark.parametrize("by_delta_rs", [True, False])
def test_a_dictionary_as_large_as_arrows_limit_is_followed_by_plain_pages(tmp_path: Path, by_delta_rs: bool) -> None:
    rows = pa.table({"id": range(200_000)})
    if by_delta_rs:
        write_deltalake(tmp_path, rows)
    else:
        write(tmp_path, "a.parquet", rows)
    assert _codings(read(tmp_path)) == {"id": Coding.MIXED}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_parquet_mr_of_spark(spark: SparkSession, tmp_path: Path, version: str) -> None:
    rows = spark.range(0, _ROWS, 1, 1).selectExpr(
        "id", "concat('name ', id % 7) few", "id % 2 = 0 flag", "if(id < 4000, 0, id) later"
    )
    options = {"parquet.dictionary.page.size": "4000", "parquet.page.size": "8000", "parquet.writer.version": version}
    rows.write.options(**options).parquet(str(tmp_path / "mr"))
    footers = read(tmp_path / "mr")
    assert footers.files[0].created_by.startswith("parquet-mr")
    _assert_correct(tmp_path / "mr", footers)
    # A dictionary that doesn't pay on the first page is dropped. Version 2 lists that of dictionary pages as PLAIN.
    few, later = (Coding.DICTIONARY, Coding.MIXED) if version == "v1" else (Coding.UNKNOWN, Coding.UNKNOWN)
    assert _codings(footers) == {"id": Coding.PLAIN, "few": few, "flag": Coding.PLAIN, "later": later}


@pytest.mark.parametrize("offset", [b"", b"\x26\x00"])
def test_old_parquet_mr_has_no_offset_of_dictionaries(tmp_path: Path, offset: bytes) -> None:
    write(tmp_path, "a.parquet", _TABLE.select(["few", "whole"]), version="1.0", compression="snappy")
    age(tmp_path / "a.parquet", offset)
    assert pq.read_table(tmp_path / "a.parquet").num_rows == _ROWS
    footers = read(tmp_path)
    assert footers.files[0].created_by.startswith("parquet-mr")
    assert _codings(footers) == {"few": Coding.DICTIONARY, "whole": Coding.DICTIONARY}
    _assert_correct(tmp_path, footers)


def test_other_pages_and_incomplete_headers_have_no_dictionary_size() -> None:
    header = bytes.fromhex("1504 15a006 1504 4c 15d001 1500 00 00")
    assert dictionary_size(header) == (104, 400)
    assert [dictionary_size(header[:length]) for length in range(11)] == [None] * 11
    assert dictionary_size(bytes.fromhex("1500 15a006 1504 2c 15d001 1500 00 00")) is None


def test_vorder_is_read_from_each_file(tmp_path: Path) -> None:
    marked = {"com.microsoft.parquet.vorder.enabled": "true", "com.microsoft.parquet.vorder.level": "9"}
    write(tmp_path, "a.parquet", _TABLE.replace_schema_metadata(marked))
    write(tmp_path, "b.parquet", _TABLE)
    footers = read(tmp_path)
    assert [file.vorder for file in footers.files] == [True, False]


def test_a_file_without_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE.slice(0, 0))
    footers = read(tmp_path)
    assert (footers.files[0].rows, footers.chunks.num_rows) == (0, len(footers.group_rows) * _TABLE.num_columns)


def test_a_footer_longer_than_the_first_read(tmp_path: Path) -> None:
    wide = pa.table({f"column {i} {'x' * 80}": [i] for i in range(1_500)})
    write(tmp_path, "a.parquet", wide)
    assert pq.read_metadata(tmp_path / "a.parquet").serialized_size > 256 * 1024
    _assert_correct(tmp_path, read(tmp_path), wide.column_names)


def test_dictionaries_before_the_tail_are_read_where_they_are(tmp_path: Path) -> None:
    texts = pa.table({"few": [f"n{i % 3}" for i in range(50_000)], "long": [f"{i:0200}" for i in range(50_000)]})
    write(tmp_path, "a.parquet", texts, compression="none", use_dictionary=["few"])
    assert named(tmp_path)[0].bytes > 4 * 256 * 1024
    assert _first_chunks(read(tmp_path))["few"]["entries"] == 3
