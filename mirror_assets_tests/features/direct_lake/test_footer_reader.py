"""Reading many footers: once each, from any store, with an error that names the file."""

from __future__ import annotations

from base64 import b64encode
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.parquet.encryption import CryptoFactory, EncryptionConfiguration, KmsClient, KmsConnectionConfig

from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.features.direct_lake.footer_reader import FooterReader
from mirror_assets.features.direct_lake.footers import Footers
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.source.source_files import FileState, SourceFiles, local_file_state
from mirror_assets_tests.errors import raises
from mirror_assets_tests.features.direct_lake.parquet_files import live, named, read, reader, write


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

    def state_of(self, path: str) -> FileState:
        return local_file_state(path, self.folder)


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
