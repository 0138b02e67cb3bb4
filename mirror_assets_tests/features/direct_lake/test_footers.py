"""Footers of real files against what was written into them, and against what pyarrow reads."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from hypothesis import given, settings
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.features.direct_lake.footers import (
    FOOTER_SCHEMA,
    ColumnChunk,
    Footer,
    FooterReader,
    Footers,
    _is_plain,
    read_footer,
)
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.process import user_cache
from mirror_assets.source.actions import LiveFile
from mirror_assets.source.source_files import SourceFiles
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.direct_lake.parquet_files import live, named, read, reader, write

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


def _footer(folder: Path, name: str) -> Footer:
    path = folder / name
    with pa.memory_map(str(path)) as opened:
        return read_footer(opened, name, path.stat().st_size)


def _plain(folder: Path, name: str | None = None) -> set[str]:
    """Return the columns of a file, of the folder's only one by default, known to have values without a dictionary."""
    name = name or named(folder)[0].path
    return {chunk.column for chunk in _footer(folder, name).chunks if chunk.is_plain}


def _assert_correct(folder: Path) -> Footers:
    """Compare each footer with pyarrow's metadata, and the sums with those of all footers at once."""
    files = named(folder)
    for file in files:
        metadata, footer = pq.read_metadata(folder / file.path), _footer(folder, file.path)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert (footer.rows, footer.created_by) == (metadata.num_rows, metadata.created_by)
        assert list(footer.group_rows) == [group.num_rows for group in groups]
        chunks = [group.column(i) for group in groups for i in range(metadata.num_columns)]
        assert [(one.column, one.physical_type, one.compressed, one.uncompressed) for one in footer.chunks] == [
            (one.path_in_schema, one.physical_type, one.total_compressed_size, one.total_uncompressed_size)
            for one in chunks
        ]
    footers = read(folder)
    _assert_sums(footers, [_footer(folder, file.path) for file in files], frozenset())
    return footers


def _assert_sums(footers: Footers, all_of_them: list[Footer], dropped: frozenset[str]) -> None:
    """Compare with the sums of whole footers, all at once in plain Python."""
    assert footers.rows.tolist() == [footer.rows for footer in all_of_them]
    assert footers.vorder.tolist() == [footer.vorder for footer in all_of_them]
    assert sorted(footers.group_rows.tolist()) == sorted(rows for footer in all_of_them for rows in footer.group_rows)
    assert footers.writers == Counter(footer.created_by for footer in all_of_them)
    assert footers.dropped.tolist() == [
        sum(chunk.compressed for chunk in footer.chunks if chunk.column in dropped) for footer in all_of_them
    ]
    chunks = [chunk for footer in all_of_them for chunk in footer.chunks]
    sums = {}
    for key in dict.fromkeys((chunk.column, chunk.physical_type) for chunk in chunks):
        own = [chunk for chunk in chunks if (chunk.column, chunk.physical_type) == key]
        sums[key] = {
            "compressed": sum(chunk.compressed for chunk in own),
            "uncompressed": sum(chunk.uncompressed for chunk in own),
            "longest": max(chunk.uncompressed for chunk in own),
            "plain": sum(chunk.is_plain for chunk in own),
            "chunks": len(own),
        }
    found = {(row.pop("column"), row.pop("physical_type")): row for row in footers.columns.to_pylist()}
    assert found == sums


def test_arrows_cpp_writer(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE, row_group_size=2_500, dictionary_pagesize_limit=4_000)
    write(tmp_path, "b.parquet", _TABLE.slice(0, 9), use_dictionary=["id"])
    _assert_correct(tmp_path)
    assert [_plain(tmp_path, f"{name}.parquet") for name in "ab"] == [{"flag"}, {*_TABLE.column_names} - {"id"}]


def test_arrows_rust_writer_of_delta_rs(tmp_path: Path) -> None:
    whole = ColumnProperties(dictionary_enabled=False)
    properties = WriterProperties(max_row_group_size=2_500, column_properties={"whole": whole})
    write_deltalake(tmp_path, _TABLE, writer_properties=properties)
    _assert_correct(tmp_path)
    assert _plain(tmp_path) == {"flag", "whole"}


@pytest.mark.parametrize(("version", "plain"), [("v1", {"id", "flag", "later"}), ("v2", {"id", "flag"})])
def test_parquet_mr_of_spark(spark: SparkSession, tmp_path: Path, version: str, plain: set[str]) -> None:
    """A dictionary that doesn't pay on the first page is dropped. Version 2 lists that of dictionary pages as PLAIN."""
    rows = spark.range(0, _ROWS, 1, 1).selectExpr(
        "id", "concat('name ', id % 7) few", "id % 2 = 0 flag", "if(id < 4000, 0, id) later"
    )
    options = {"parquet.dictionary.page.size": "4000", "parquet.page.size": "8000", "parquet.writer.version": version}
    rows.write.options(**options).parquet(str(tmp_path / "mr"))
    assert [writer.startswith("parquet-mr") for writer in _assert_correct(tmp_path / "mr").writers] == [True]
    assert _plain(tmp_path / "mr") == plain


def test_old_parquet_mr_shows_a_dictionary_by_encodings_alone() -> None:
    """Before 1.12 (Spark before 3.2), it has no offset of dictionary pages."""
    chunk = SimpleNamespace(has_dictionary_page=False, encodings=("BIT_PACKED", "PLAIN_DICTIONARY", "RLE"))
    assert not _is_plain(chunk, "parquet-mr version 1.10.1")


def test_a_file_without_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE.slice(0, 0))
    footers = _assert_correct(tmp_path)
    assert footers.rows.tolist() == [0]


def test_a_footer_longer_than_the_first_read(tmp_path: Path) -> None:
    wide = pa.table({f"column {i} {'x' * 80}": [i] for i in range(1_500)})
    write(tmp_path, "a.parquet", wide)
    assert pq.read_metadata(tmp_path / "a.parquet").serialized_size > 256 * 1024
    _assert_correct(tmp_path)


def _assert_equal(found: Footers, expected: Footers) -> None:
    for name, values in vars(expected).items():
        is_equal = values == vars(found)[name]
        assert is_equal.all() if isinstance(is_equal, np.ndarray) else is_equal, name


class _Counting(SourceFiles):
    """A folder's files, which remember what was opened."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), PlainAccess(str(folder)))
        self.opened: list[str] = []

    def open(self, path: str) -> pa.NativeFile:
        self.opened.append(path)
        return super().open(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "abc":
        write(tmp_path / "table", f"{name}.parquet", pa.table({"id": range(ord(name)), "text": [name] * ord(name)}))
    return tmp_path / "table"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _read(folder: Path, cache: Path) -> tuple[Footers, list[str]]:
    """Return the footers of all files in the folder, and the files that were opened."""
    opener = _Counting(folder)
    footers = FooterReader(str(folder), opener, cache).read(named(folder))
    return footers, opener.opened


def test_a_file_is_read_once(folder: Path, cache: Path) -> None:
    first, opened = _read(folder, cache)
    assert opened == ["a.parquet", "b.parquet", "c.parquet"]
    again, opened = _read(folder, cache)
    assert opened == []
    _assert_equal(again, first)
    write(folder, "d.parquet", pa.table({"id": [1]}))
    (folder / "b.parquet").unlink()
    write(folder, "a.parquet", pa.table({"id": range(1_000)}))  # of another size, so it is another file
    footers, opened = _read(folder, cache)
    assert opened == ["a.parquet", "d.parquet"]
    assert footers.rows.tolist() == [1_000, ord("c"), 1]
    assert len(list(cache.iterdir())) == 1


def test_each_table_has_a_cache(folder: Path, cache: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", "a.parquet", pa.table({"id": [1]}))
    _read(folder, cache)
    _, opened = _read(tmp_path / "other", cache)
    assert opened == ["a.parquet"]


def test_a_damaged_cache_is_replaced(folder: Path, cache: Path) -> None:
    _read(folder, cache)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    garbled = whole.replace(b"a.parquet", b"q.parquet"), whole.replace(b"created_by", b"created_\xff\xff")
    for damaged in (b"", whole[:-20], *garbled):
        file.write_bytes(damaged)
        footers, opened = _read(folder, cache)
        assert (len(opened), len(footers.rows)) == (3, 3)
        assert _read(folder, cache)[1] == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_CACHE_HOME": "/caches"}, Path("/caches/mirror_assets")),
        ({"XDG_CACHE_HOME": "relative"}, Path("~/.cache/mirror_assets").expanduser()),
        ({}, Path("~/.cache/mirror_assets").expanduser()),
    ],
)
def test_caches_are_in_the_users_cache_folder(environment: dict[str, str], expected: Path) -> None:
    assert user_cache(environment) == expected


def _read_in_process(folder: str, cache: str) -> int:
    return len(_read(Path(folder), Path(cache))[0].rows)


def test_processes_need_no_lock(folder: Path, cache: Path) -> None:
    for number in range(40):
        write(folder, f"{number}.parquet", pa.table({"id": [number]}))
    # Not a Pool: it ends processes by SIGTERM, which those ignore where SIGINT is ignored and dagster makes both one.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        counts = pool.map(_read_in_process, [str(folder)] * 4, [str(cache)] * 4)
    assert list(counts) == [43] * 4
    footers, opened = _read(folder, cache)
    assert (opened, len(footers.rows)) == ([], 43)
    assert not list(cache.glob(".*"))


def test_a_folder_that_can_not_be_written_is_an_error(folder: Path, cache: Path) -> None:
    cache.write_text("a file")
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match="--no-cache"):
        _read(folder, cache)


@pytest.mark.parametrize("is_local", [True, False])
def test_a_deleted_file_is_named(folder: Path, is_local: bool) -> None:
    (folder / "b.parquet").unlink()
    uri = str(folder) if is_local else folder.absolute().as_uri()
    with raises(StopError, ErrorCode.DATA_FILE_MISSING, match=r"b\.parquet is missing"):
        FooterReader(uri, SourceFiles(uri, PlainAccess(uri))).read([live("b.parquet", 1_000)])


def test_a_file_that_is_no_parquet_is_named(folder: Path) -> None:
    whole = (folder / "a.parquet").read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little")
    for why, data in {
        "magic bytes": whole[:-1] + b"!",
        "4294967295bytes": whole[:-8] + b"\xff\xff\xff\xff" + whole[-4:],
        "Couldn't deserialize thrift": whole[: -8 - footer] + b"\x99" * footer + whole[-8:],
    }.items():
        (folder / "a.parquet").write_bytes(data)
        with raises(StopError, ErrorCode.DATA_FILE_UNREADABLE, match=rf"a\.parquet can't be read: .*{why}"):
            read(folder)
    size = (folder / "b.parquet").stat().st_size
    for wrong, why in {20: "magic bytes", 0: "0 bytes", size + 1: f"only {size} bytes of {size + 1}"}.items():
        with raises(StopError, ErrorCode.DATA_FILE_UNREADABLE, match=why):
            reader(folder).read([live("b.parquet", wrong)])


class _PlainKeys(KmsClient):  # type: ignore[misc]
    """Stores keys unencrypted."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        del master_key_identifier
        return b64encode(key_bytes)


@pytest.mark.parametrize(("plaintext_footer", "why"), [(True, "its columns are encrypted"), (False, "encrypted meta")])
def test_an_encrypted_file_is_named(tmp_path: Path, plaintext_footer: bool, why: str) -> None:
    configuration = EncryptionConfiguration("footer", column_keys={"a": ["id"]}, plaintext_footer=plaintext_footer)
    properties = CryptoFactory(lambda _: _PlainKeys()).file_encryption_properties(KmsConnectionConfig(), configuration)
    write(tmp_path, "a.parquet", pa.table({"id": [1], "text": ["a"]}), encryption_properties=properties)
    with raises(StopError, ErrorCode.DATA_FILE_UNREADABLE, match=rf"a\.parquet can't be read: .*{why}"):
        read(tmp_path)


def test_a_remote_store_gives_the_same_as_a_disk(folder: Path) -> None:
    files, uri = named(folder), folder.absolute().as_uri()
    remote = FooterReader(uri, SourceFiles(uri, PlainAccess(uri)))
    assert not remote.opener.is_local
    _assert_equal(remote.read(files), reader(folder).read(files))


def test_files_outside_of_the_folder(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "else", "x.parquet", pa.table({"id": [1, 2]}))
    outside = live((tmp_path / "else" / "x.parquet").as_uri(), (tmp_path / "else" / "x.parquet").stat().st_size)
    assert reader(folder).read([outside]).rows.tolist() == [2]


def test_footers_are_in_the_order_of_the_files(folder: Path) -> None:
    footers = reader(folder).read(named(folder)[::-1])
    assert footers.rows.tolist() == [ord(name) for name in "cba"]
    assert len(reader(folder).read([]).rows) == 0


_CHUNKS = st.builds(
    ColumnChunk,
    column=st.sampled_from(["id", "text", "gone", "s.gone"]),
    physical_type=st.sampled_from(["INT32", "INT64", "BYTE_ARRAY"]),
    compressed=st.integers(0, 2**40),
    uncompressed=st.integers(0, 2**40),
    is_plain=st.booleans(),
)
_FOOTERS = st.lists(
    st.builds(
        Footer,
        path=st.sampled_from([f"{name}.parquet" for name in "abcdefgh"]),
        bytes=st.integers(1, 3),
        rows=st.integers(0, 2**40),
        created_by=st.sampled_from(["one", "other"]),
        vorder=st.booleans(),
        group_rows=st.lists(st.integers(0, 99), max_size=3).map(tuple),
        chunks=st.lists(_CHUNKS, max_size=4).map(tuple),
    ),
    max_size=9,
    unique_by=lambda footer: (footer.path, footer.bytes),
)


class _Known(FooterReader):
    """A reader of files that exist in memory alone."""

    def _read_one(self, file: LiveFile) -> Footer:
        return _IN_MEMORY[file.path, file.bytes]


_IN_MEMORY: dict[tuple[str, int], Footer] = {}


@settings(max_examples=40)
@given(_FOOTERS, _FOOTERS, st.integers(1, 12))
def test_sums_of_batches_are_those_of_all_footers_at_once(
    tmp_path_factory: pytest.TempPathFactory, before: list[Footer], now: list[Footer], chunks: int
) -> None:
    """Files of two versions: some are in the cache of the first, whatever their batches were."""
    _IN_MEMORY.clear()
    _IN_MEMORY.update({(footer.path, footer.bytes): footer for footer in [*now, *before]})
    dropped, cache = frozenset(["gone", "s.gone"]), tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_assets.features.direct_lake.footers._BATCH_CHUNKS", chunks)
        patch.setattr("mirror_assets.features.direct_lake.footers._FIRST_FILES", 2)
        for version in (before, now, now[::-1]):
            files = [live(footer.path, footer.bytes) for footer in version]
            footers = _Known("t", SourceFiles("t", PlainAccess("t")), cache).read(files, dropped.__contains__)
            _assert_sums(footers, [_IN_MEMORY[file.path, file.bytes] for file in files], dropped)


def test_a_batch_has_as_many_files_as_its_column_chunks_allow(folder: Path, cache: Path) -> None:
    """Footers of 2 columns in batches of 4 chunks: the memory of a batch doesn't grow with files or columns."""
    for number in range(8):
        write(folder, f"{number}.parquet", pa.table({"id": [number], "text": ["x"]}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mirror_assets.features.direct_lake.footers._BATCH_CHUNKS", 4)
        patch.setattr("mirror_assets.features.direct_lake.footers._FIRST_FILES", 1)
        _read(folder, cache)
    (file,) = cache.iterdir()
    stored = pq.ParquetFile(file)
    assert stored.schema_arrow.equals(FOOTER_SCHEMA)
    groups = [stored.metadata.row_group(index).num_rows for index in range(stored.num_row_groups)]
    assert groups == [1, 2, 2, 2, 2, 2]
