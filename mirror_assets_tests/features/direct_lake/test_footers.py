"""Footers of real files against what was written into them, and against what pyarrow reads."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import ColumnProperties, WriterProperties, write_deltalake
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig
from pyspark.sql import SparkSession

from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.features.direct_lake.footers import FooterReader, Footers, _is_plain
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.process import user_cache
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


def _plain(footers: Footers, file: int = 0) -> set[object]:
    """Return the columns of a file that are known to have values without a dictionary."""
    return {row["column"] for row in footers.chunks.to_pylist() if row["file"] == file and row["is_plain"]}


def _assert_correct(folder: Path, footers: Footers) -> None:
    """Compare with pyarrow's metadata."""
    for index, file in enumerate(footers.files):
        metadata = pq.read_metadata(folder / file.path)
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        assert (file.rows, file.created_by) == (metadata.num_rows, metadata.created_by)
        assert file.group_rows == [group.num_rows for group in groups]
        rows = footers.chunks.filter(pc.equal(footers.chunks["file"], index)).to_pylist()
        chunks = [group.column(i) for group in groups for i in range(metadata.num_columns)]
        assert [(row["column"], row["physical_type"], row["compressed"], row["uncompressed"]) for row in rows] == [
            (one.path_in_schema, one.physical_type, one.total_compressed_size, one.total_uncompressed_size)
            for one in chunks
        ]


def test_arrows_cpp_writer(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE, row_group_size=2_500, dictionary_pagesize_limit=4_000)
    write(tmp_path, "b.parquet", _TABLE.slice(0, 9), use_dictionary=["id"])
    footers = read(tmp_path)
    _assert_correct(tmp_path, footers)
    assert [_plain(footers, file) for file in (0, 1)] == [{"flag"}, {*_TABLE.column_names} - {"id"}]


def test_arrows_rust_writer_of_delta_rs(tmp_path: Path) -> None:
    whole = ColumnProperties(dictionary_enabled=False)
    properties = WriterProperties(max_row_group_size=2_500, column_properties={"whole": whole})
    write_deltalake(tmp_path, _TABLE, writer_properties=properties)
    footers = read(tmp_path)
    _assert_correct(tmp_path, footers)
    assert _plain(footers) == {"flag", "whole"}


@pytest.mark.parametrize(("version", "plain"), [("v1", {"id", "flag", "later"}), ("v2", {"id", "flag"})])
def test_parquet_mr_of_spark(spark: SparkSession, tmp_path: Path, version: str, plain: set[str]) -> None:
    """A dictionary that doesn't pay on the first page is dropped. Version 2 lists that of dictionary pages as PLAIN."""
    rows = spark.range(0, _ROWS, 1, 1).selectExpr(
        "id", "concat('name ', id % 7) few", "id % 2 = 0 flag", "if(id < 4000, 0, id) later"
    )
    options = {"parquet.dictionary.page.size": "4000", "parquet.page.size": "8000", "parquet.writer.version": version}
    rows.write.options(**options).parquet(str(tmp_path / "mr"))
    footers = read(tmp_path / "mr")
    assert footers.files[0].created_by.startswith("parquet-mr")
    _assert_correct(tmp_path / "mr", footers)
    assert _plain(footers) == plain


def test_old_parquet_mr_shows_a_dictionary_by_encodings_alone() -> None:
    """Before 1.12 (Spark before 3.2), it has no offset of dictionary pages."""
    chunk = SimpleNamespace(has_dictionary_page=False, encodings=("BIT_PACKED", "PLAIN_DICTIONARY", "RLE"))
    assert not _is_plain(chunk, "parquet-mr version 1.10.1")


def test_a_file_without_rows(tmp_path: Path) -> None:
    write(tmp_path, "a.parquet", _TABLE.slice(0, 0))
    footers = read(tmp_path)
    assert (footers.files[0].rows, footers.chunks.num_rows) == (0, len(footers.group_rows) * _TABLE.num_columns)


def test_a_footer_longer_than_the_first_read(tmp_path: Path) -> None:
    wide = pa.table({f"column {i} {'x' * 80}": [i] for i in range(1_500)})
    write(tmp_path, "a.parquet", wide)
    assert pq.read_metadata(tmp_path / "a.parquet").serialized_size > 256 * 1024
    _assert_correct(tmp_path, read(tmp_path))


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
