"""Reading many footers: once each, from anywhere, and saying what is wrong with which file."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mirror_assets.direct_lake.footer_reader import FooterCache, FooterReader
from mirror_assets.direct_lake.footers import Footers
from mirror_assets.errors import ErrorCode, SettingError, StopError
from mirror_assets.source.access import PlainAccess
from mirror_assets.source.source_files import FileState, SourceFiles, local_file_state
from mirror_assets_tests.direct_lake.parquet_files import live, named, reader, write


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


def _read(folder: Path, cache: Path, *, dictionaries: bool = True) -> tuple[Footers, list[str]]:
    """The facts of all files in the folder, and the files that were opened for it."""
    opener, kept = _Counting(folder), FooterCache.of(cache, str(folder))
    footers = FooterReader(str(folder), opener, kept, dictionaries=dictionaries).read(named(folder))
    return footers, opener.opened


def test_a_file_is_read_once(folder: Path, tmp_path: Path) -> None:
    first, opened = _read(folder, tmp_path / "cache")
    assert opened == ["a.parquet", "b.parquet", "c.parquet"]
    again, opened = _read(folder, tmp_path / "cache")
    assert opened == []
    assert again.table.equals(first.table)
    write(folder, "d.parquet", pa.table({"id": [1]}))
    (folder / "b.parquet").unlink()
    footers, opened = _read(folder, tmp_path / "cache")
    assert opened == ["d.parquet"]
    assert [file.rows for file in footers.files] == [ord("a"), ord("c"), 1]


def test_a_file_of_another_size_is_another_file(folder: Path, tmp_path: Path) -> None:
    _read(folder, tmp_path / "cache")
    write(folder, "a.parquet", pa.table({"id": range(1_000)}))
    footers, opened = _read(folder, tmp_path / "cache")
    assert (opened, footers.files[0].rows) == (["a.parquet"], 1_000)


def test_tables_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "other", "a.parquet", pa.table({"id": [1]}))
    _read(folder, tmp_path / "cache")
    _, opened = _read(tmp_path / "other", tmp_path / "cache")
    assert opened == ["a.parquet"]


def test_facts_without_dictionaries_do_where_none_are_asked_for(folder: Path, tmp_path: Path) -> None:
    without, _ = _read(folder, tmp_path / "cache", dictionaries=False)
    assert (without.dictionaries, without.chunks["entries"].null_count) == (False, without.chunks.num_rows)
    with_them, opened = _read(folder, tmp_path / "cache")
    assert (len(opened), with_them.dictionaries) == (3, True)
    _, opened = _read(folder, tmp_path / "cache", dictionaries=False)
    assert opened == []


def test_a_cache_that_a_crash_damaged_is_read_over(folder: Path, tmp_path: Path) -> None:
    _read(folder, tmp_path / "cache")
    (segment,) = (tmp_path / "cache").glob("*/*")
    whole = segment.read_bytes()
    garbled = whole.replace(b"a.parquet", b"q.parquet"), whole.replace(b"created_by", b"created_\xff\xff")
    for damaged in (b"", whole[:-20], *garbled):
        segment.write_bytes(damaged)
        footers, opened = _read(folder, tmp_path / "cache")
        assert (len(opened), len(footers.files)) == (3, 3)
        for other in segment.parent.iterdir():
            if other != segment:
                other.rename(segment)


def test_many_files_of_facts_become_one_of_what_is_wanted(folder: Path, tmp_path: Path) -> None:
    for number in range(20):
        write(folder, f"new-{number}.parquet", pa.table({"id": [number]}))
        (folder / f"new-{number - 1}.parquet").unlink(missing_ok=True)
        _read(folder, tmp_path / "cache")
    assert len(list((tmp_path / "cache").glob("*/*"))) <= 16
    _, opened = _read(folder, tmp_path / "cache")
    assert opened == []


def _read_in_process(folder: str, cache: str) -> int:
    return len(_read(Path(folder), Path(cache))[0].files)


def test_processes_need_no_lock(folder: Path, tmp_path: Path) -> None:
    for number in range(40):
        write(folder, f"{number}.parquet", pa.table({"id": [number]}))
    # Not a Pool: it ends processes by SIGTERM, which those ignore where SIGINT is ignored and dagster makes both one.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        counts = pool.map(_read_in_process, [str(folder)] * 4, [str(tmp_path / "cache")] * 4)
    assert list(counts) == [43] * 4
    footers, opened = _read(folder, tmp_path / "cache")
    assert (opened, len(footers.files)) == ([], 43)
    assert not list((tmp_path / "cache").glob("*/.*"))


def test_a_folder_that_cannot_be_written_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(SettingError, match="--no-cache") as error:
        _read(folder, tmp_path / "cache")
    assert (error.value.code, isinstance(error.value, SettingError)) == (ErrorCode.CACHE_UNUSABLE, True)


@pytest.mark.parametrize("is_local", [True, False])
def test_a_file_that_is_gone_is_named(folder: Path, is_local: bool) -> None:
    (folder / "b.parquet").unlink()
    files = [live(f"{name}.parquet", 1_000) for name in "b"]
    with pytest.raises(StopError, match=r"b\.parquet is missing") as error:
        FooterReader(str(folder), _Counting(folder, is_local=is_local)).read(files)
    assert (error.value.code, isinstance(error.value, StopError)) == (ErrorCode.DATA_FILE_MISSING, True)


def _broken(data: bytes) -> dict[str, bytes]:
    footer = int.from_bytes(data[-8:-4], "little")
    return {
        "magic bytes": data[:-1] + b"!",
        "its footer should have 4294967295 bytes": data[:-8] + b"\xff\xff\xff\xff" + data[-4:],
        "Couldn't deserialize thrift": data[: -8 - footer] + b"\x99" * footer + data[-8:],
    }


def test_a_file_that_is_no_parquet_is_named(folder: Path) -> None:
    whole = (folder / "a.parquet").read_bytes()
    for why, data in _broken(whole).items():
        (folder / "a.parquet").write_bytes(data)
        with pytest.raises(StopError, match=why) as error:
            reader(folder).read(named(folder))
        assert ("a.parquet" in error.value.what, error.value.code) == (True, ErrorCode.FOOTER_UNREADABLE)
    with pytest.raises(StopError, match="magic bytes"):
        reader(folder).read([live("b.parquet", 20)])
    more = (folder / "b.parquet").stat().st_size + 1
    with pytest.raises(StopError, match=f"only {more - 1} bytes of {more}"):
        reader(folder).read([live("b.parquet", more)])


def test_remote_and_local_say_the_same(folder: Path) -> None:
    files = named(folder)
    uri = folder.absolute().as_uri()
    remote = FooterReader(uri, SourceFiles(uri, PlainAccess(uri)))
    assert not remote.opener.is_local
    assert remote.read(files).table.equals(reader(folder).read(files).table)


def test_files_outside_of_the_folder(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "else", "x.parquet", pa.table({"id": [1, 2]}))
    outside = live((tmp_path / "else" / "x.parquet").as_uri(), (tmp_path / "else" / "x.parquet").stat().st_size)
    assert reader(folder).read([outside]).files[0].rows == 2


def test_the_order_is_that_of_the_question(folder: Path) -> None:
    files = named(folder)[::-1]
    footers = reader(folder).read(files)
    assert [file.path for file in footers.files] == [file.path for file in files]
    assert footers.group_rows[0] == pq.read_metadata(folder / "c.parquet").num_rows
    assert reader(folder).read([]).files == ()
