"""Columns over many files: their sizes, and how many different values they can have."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import WriterProperties, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from mirror_assets.direct_lake.columns import DistinctValues, ParquetColumn, parquet_columns
from mirror_assets.direct_lake.footers import Coding
from mirror_assets_tests.direct_lake.parquet_files import age, named, read, reader, write


def _columns(folder: Path) -> dict[str, ParquetColumn]:
    return {column.path: column for column in parquet_columns(read(folder))}


def test_sums_are_those_of_the_files(tmp_path: Path) -> None:
    rows = pa.table({"id": range(100), "text": [None if i % 4 == 0 else f"t{i % 3}" for i in range(100)]})
    write(tmp_path, "a.parquet", rows, row_group_size=30)
    write(tmp_path, "b.parquet", rows.slice(0, 10).drop_columns("id"))
    columns = _columns(tmp_path)
    assert list(columns) == ["id", "text"]
    text = columns["text"]
    assert (text.values, text.nulls, text.codings) == (110, 25 + 3, {Coding.UNKNOWN: 5})
    metadata = [pq.read_metadata(tmp_path / f"{name}.parquet") for name in "ab"]
    chunks = [m.row_group(i).column(m.num_columns - 1) for m in metadata for i in range(m.num_row_groups)]
    assert text.compressed == sum(chunk.total_compressed_size for chunk in chunks)


def test_a_type_that_was_widened_shows_both(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", pa.table({"n": pa.array([1], pa.int32())}))
    write(tmp_path, "b.parquet", pa.table({"n": pa.array([1], pa.int64())}))
    assert _columns(tmp_path)["n"].physical_types == ("INT32", "INT64")


@settings(max_examples=25)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=40), min_size=1, max_size=3),
    st.booleans(),
)
def test_bounds_hold(files: list[list[str | None]], dictionary: bool) -> None:
    """Whatever is written, the number of different values and their length are within the bounds."""
    with TemporaryDirectory() as folder:
        properties = WriterProperties(max_row_group_size=16, dictionary_page_size_limit=None if dictionary else 1)
        for values in files:
            rows = pa.table({"text": pa.array(values, pa.string())})
            write_deltalake(folder, rows, mode="append", writer_properties=properties)
        column = _columns(Path(folder))["text"]
    together = [value for values in files for value in values if value is not None]
    assert column.distinct is not None
    assert column.distinct.least <= len(set(together)) <= column.distinct.most
    assert column.longest_bytes is not None
    assert max((len(value.encode()) for value in together), default=0) <= column.longest_bytes


def test_a_dictionary_with_values_that_no_row_has_is_no_lower_bound(tmp_path: Path) -> None:
    indices = pa.array([0, 1, 0], pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "unused", "too"]))
    write(tmp_path, "a.parquet", pa.table({"text": texts}))
    column = _columns(tmp_path)["text"]
    assert set(pq.read_table(tmp_path / "a.parquet")["text"].to_pylist()) == {"a", "b"}
    assert column.distinct == DistinctValues(1, 3)


def test_without_dictionaries_nothing_is_said_of_how_many_values_there_are(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", pa.table({"text": ["a", "b"]}))
    (column,) = parquet_columns(reader(tmp_path, dictionaries=False).read(named(tmp_path)))
    assert (column.distinct, column.dictionary_bytes) == (None, None)
    assert column.longest_bytes == column.uncompressed  # all that is left to bound it


@pytest.mark.parametrize("dictionary", [True, False])
def test_without_statistics_all_values_may_be_nulls(tmp_path: Path, dictionary: bool) -> None:
    nulls = pa.table({"text": pa.array([None, None], pa.string())})
    write(tmp_path, "a.parquet", nulls, write_statistics=False, use_dictionary=dictionary)
    column = _columns(tmp_path)["text"]
    assert (column.nulls, column.distinct) == (None, DistinctValues(0, 2))


def test_a_dictionary_of_all_pages_bounds_values_and_their_length(tmp_path: Path) -> None:
    """As Spark's writer shows it, file by file."""
    for name, values in (("a", ["x", "yyyy"]), ("b", ["yyyy", "zz"])):
        write(tmp_path, f"{name}.parquet", pa.table({"text": values * 1_000}), version="1.0")
        age(tmp_path / f"{name}.parquet", b"")
    column = _columns(tmp_path)["text"]
    assert (column.codings, column.distinct) == ({Coding.DICTIONARY: 2}, DistinctValues(2, 4))
    assert column.longest_bytes == len("yyyy" + "zz")
