"""Footers of real files against what was written into them, and against what pyarrow reads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.features.direct_lake.footers import Coding, FooterReader, Footers, dictionary_size
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.source.source_files import FilePresence, SourceFiles, local_presence
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.direct_lake.parquet_files import age, live, named, read, reader, write

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


class _Counting(SourceFiles):
    """Opens a folder's files, and remembers which."""

    def __init__(self, folder: Path, *, is_local: bool = True) -> None:
        super().__init__(str(folder), PlainAccess(str(folder)))
        self.folder = folder
        self.opened: list[str] = []
        self._claims_local = is_local

    @property
    def is_local(self) -> bool:
        return self._claims_local

    def open(self, path: str) -> pa.NativeFile:
        self.opened.append(path)
        return pa.OSFile(str(self.folder / path))

    def presence_of(self, path: str) -> FilePresence:
        return local_presence(path, self.folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in "abc":
        write(tmp_path / "table", f"{name}.parquet", pa.table({"id": range(ord(name)), "text": [name] * ord(name)}))
    return tmp_path / "table"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def _read(folder: Path, cache: Path, *, dictionaries: bool = True) -> tuple[Footers, list[str]]:
    """Return the footers of all files in the folder, and the files that were opened."""
    opener = _Counting(folder)
    footers = FooterReader(str(folder), opener, cache, dictionaries).read(named(folder))
    return footers, opener.opened


def test_a_file_is_read_once(folder: Path, cache: Path) -> None:
    first, opened = _read(folder, cache)
    assert opened == ["a.parquet", "b.parquet", "c.parquet"]
    again, opened = _read(folder, cache)
    assert opened == []
    assert again.table.equals(first.table)
    write(folder, "d.parquet", pa.table({"id": [1]}))
    (folder / "b.parquet").unlink()
    write(folder, "a.parquet", pa.table({"id": range(1_000)}))  # of another size, so it is another file
    footers, opened = _read(folder, cache)
    assert opened == ["a.parquet", "d.parquet"]
    assert [file.rows for file in footers.files] == [1_000, ord("c"), 1]
    assert len(list(cache.iterdir())) == 1


def test_each_table_has_a_cache(folder: Path, cache: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", "a.parquet", pa.table({"id": [1]}))
    _read(folder, cache)
    _, opened = _read(tmp_path / "other", cache)
    assert opened == ["a.parquet"]


def test_footers_without_dictionaries_are_read_again_for_dictionaries(folder: Path, cache: Path) -> None:
    without, _ = _read(folder, cache, dictionaries=False)
    assert (without.dictionaries, without.chunks["entries"].null_count) == (False, without.chunks.num_rows)
    with_them, opened = _read(folder, cache)
    assert (len(opened), with_them.dictionaries) == (3, True)
    _, opened = _read(folder, cache, dictionaries=False)
    assert opened == []


def test_a_damaged_cache_is_replaced(folder: Path, cache: Path) -> None:
    _read(folder, cache)
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    garbled = whole.replace(b"a.parquet", b"q.parquet"), whole.replace(b"created_by", b"created_\xff\xff")
    for damaged in (b"", whole[:-20], *garbled):
        file.write_bytes(damaged)
        footers, opened = _read(folder, cache)
        assert (len(opened), len(footers.files)) == (3, 3)
        assert _read(folder, cache)[1] == []


def _read_in_process(folder: str, cache: str) -> int:
    return len(_read(Path(folder), Path(cache))[0].files)


def test_processes_need_no_lock(folder: Path, cache: Path) -> None:
    for number in range(40):
        write(folder, f"{number}.parquet", pa.table({"id": [number]}))
    # Not a Pool: it ends processes by SIGTERM, which those ignore where SIGINT is ignored and dagster makes both one.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        counts = pool.map(_read_in_process, [str(folder)] * 4, [str(cache)] * 4)
    assert list(counts) == [43] * 4
    footers, opened = _read(folder, cache)
    assert (opened, len(footers.files)) == ([], 43)
    assert not list(cache.glob(".*"))


def test_a_folder_that_can_not_be_written_is_an_error(folder: Path, cache: Path) -> None:
    cache.write_text("a file")
    with raises(SettingError, ErrorCode.CONFIG_INVALID, match="--no-cache"):
        _read(folder, cache)


@pytest.mark.parametrize("is_local", [True, False])
def test_a_deleted_file_is_named(folder: Path, is_local: bool) -> None:
    (folder / "b.parquet").unlink()
    with raises(StopError, ErrorCode.DATA_FILE_MISSING, match=r"b\.parquet is missing"):
        FooterReader(str(folder), _Counting(folder, is_local=is_local)).read([live("b.parquet", 1_000)])


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
    assert remote.read(files).table.equals(reader(folder).read(files).table)


def test_files_outside_of_the_folder(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "else", "x.parquet", pa.table({"id": [1, 2]}))
    outside = live((tmp_path / "else" / "x.parquet").as_uri(), (tmp_path / "else" / "x.parquet").stat().st_size)
    assert reader(folder).read([outside]).files[0].rows == 2


def test_footers_are_in_the_order_of_the_files(folder: Path) -> None:
    files = named(folder)[::-1]
    footers = reader(folder).read(files)
    assert [file.path for file in footers.files] == [file.path for file in files]
    assert footers.group_rows[0] == pq.read_metadata(folder / "c.parquet").num_rows
    assert reader(folder).read([]).files == ()
