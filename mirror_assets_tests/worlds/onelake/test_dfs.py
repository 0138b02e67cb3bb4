"""What the DFS endpoint answers to the real SDK (azure-storage-file-datalake)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import DataLakeDirectoryClient, DataLakeFileClient, FileSystemClient

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake, Operation
from mirror_assets_tests.worlds.onelake.sdk import refused


class Zone:
    """Clients for paths of one landing zone."""

    def __init__(self, workspace: FileSystemClient, item: LoopbackItem) -> None:
        self.workspace, self.prefix = workspace, f"{item.guid}/Files/LandingZone"

    def file(self, path: str) -> DataLakeFileClient:
        return self.workspace.get_file_client(f"{self.prefix}/{path}")

    def folder(self, path: str) -> DataLakeDirectoryClient:
        return self.workspace.get_directory_client(f"{self.prefix}/{path}")

    def target(self, path: str) -> str:
        return f"{self.workspace.file_system_name}/{self.prefix}/{path}"


@pytest.fixture
def zone(workspace: FileSystemClient, item: LoopbackItem) -> Zone:
    return Zone(workspace, item)


def test_appended_data_is_there_when_it_is_flushed(zone: Zone, item: LoopbackItem) -> None:
    file = zone.file("a/file")
    created = file.create_file()
    file.append_data(b"one ", 0)
    file.append_data(b"two", 4, validate_content=True)
    assert item.read("a/file") == b""
    assert file.flush_data(7)["etag"] != created["etag"]
    assert item.read("a/file") == b"one two"


def test_a_repeated_flush_changes_nothing(zone: Zone) -> None:
    file = zone.file("file")
    file.create_file()
    file.append_data(b"data", 0)
    assert file.flush_data(4)["etag"] == file.flush_data(4)["etag"]


def test_a_repeated_append_replaces(zone: Zone, item: LoopbackItem) -> None:
    file = zone.file("file")
    file.create_file()
    file.append_data(b"data", 0)
    file.append_data(b"DATA", 0)
    file.flush_data(4)
    assert item.read("file") == b"DATA"


def test_creating_without_a_condition_empties_a_file(zone: Zone, item: LoopbackItem) -> None:
    item.write("file", b"data")
    zone.file("file").create_file()
    assert item.read("file") == b""


def test_uploading_is_create_append_and_conditional_flush(
    zone: Zone, item: LoopbackItem, onelake: LoopbackOneLake
) -> None:
    zone.file("file").upload_data(b"0123456789", overwrite=True, chunk_size=4)
    assert item.read("file") == b"0123456789"
    assert onelake.log.counts() == {Operation.CREATE: 1, Operation.APPEND: 3, Operation.FLUSH: 1}


def test_a_rename_keeps_the_etag(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"data")
    source = zone.file("from")
    etag = source.get_file_properties().etag
    moved = source.rename_file(
        zone.target("to"), source_etag=etag, source_match_condition=MatchConditions.IfNotModified
    )
    assert moved.get_file_properties().etag == etag
    assert (item.read("to"), item.names()) == (b"data", ["to"])


def test_a_rename_overwrites_unless_it_must_not(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"new")
    item.write("to", b"old")
    zone.file("from").rename_file(zone.target("to"))
    assert item.read("to") == b"new"


MISSING, UNCHANGED = MatchConditions.IfMissing, MatchConditions.IfNotModified
STALE = '"0x0"'
REFUSED: dict[str, tuple[Callable[[Zone], object], tuple[int, str]]] = {
    "append inside committed data": (
        lambda zone: zone.file("file").append_data(b"more", 2),
        (400, "InvalidQueryParameterValue"),
    ),
    "flush of another length": (lambda zone: zone.file("file").flush_data(5), (400, "InvalidFlushPosition")),
    "body with another MD5": (
        lambda zone: zone.file("file").append_data(b"x", 4, headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}),
        (400, "Md5Mismatch"),
    ),
    "create over a file": (
        lambda zone: zone.file("file").create_file(match_condition=MISSING),
        (409, "PathAlreadyExists"),
    ),
    "flush of another content": (
        lambda zone: zone.file("file").flush_data(4, etag=STALE, match_condition=UNCHANGED),
        (412, "ConditionNotMet"),
    ),
    "upload to no file": (lambda zone: zone.file("none").upload_data(b"x", overwrite=False), (404, "PathNotFound")),
    "rename to a taken name": (
        lambda zone: zone.file("file").rename_file(zone.target("a/file"), match_condition=MISSING),
        (409, "PathAlreadyExists"),
    ),
    "rename of another content": (
        lambda zone: zone.file("file").rename_file(
            zone.target("to"), source_etag=STALE, source_match_condition=UNCHANGED
        ),
        (412, "SourceConditionNotMet"),
    ),
    "rename of no file to a taken name": (
        lambda zone: zone.file("none").rename_file(zone.target("file"), match_condition=MISSING),
        (404, "SourcePathNotFound"),
    ),
    "rename into no folder": (
        lambda zone: zone.file("file").rename_file(zone.target("none/to")),
        (404, "RenameDestinationParentPathNotFound"),
    ),
    "rename over a folder with files": (
        lambda zone: zone.folder("a").rename_directory(zone.target("b")),
        (409, "PathAlreadyExists"),
    ),
    "rename of a folder into itself": (
        lambda zone: zone.folder("a").rename_directory(zone.target("a/b")),
        (400, "InvalidRenameSourcePath"),
    ),
    "delete of another content": (
        lambda zone: zone.file("file").delete_file(etag=STALE, match_condition=UNCHANGED),
        (412, "ConditionNotMet"),
    ),
    "delete of no file": (lambda zone: zone.file("none").delete_file(), (404, "PathNotFound")),
    "create below a file": (lambda zone: zone.file("file/x").create_file(), (409, "PathAlreadyExists")),
    "create a folder over a file": (lambda zone: zone.folder("file").create_directory(), (409, "PathAlreadyExists")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_request_changes_nothing(zone: Zone, item: LoopbackItem, name: str) -> None:
    request, expected = REFUSED[name]
    for path in ("file", "a/file", "b/file"):
        item.write(path, b"data")
    with pytest.raises(HttpResponseError) as error:
        request(zone)
    assert refused(error.value) == expected
    assert [item.read(path) for path in item.paths()] == [b"data"] * 3


def test_a_file_is_deleted(zone: Zone, item: LoopbackItem) -> None:
    item.write("file", b"data")
    zone.file("file").delete_file(etag=zone.file("file").get_file_properties().etag, match_condition=UNCHANGED)
    assert item.paths() == []


def test_a_folder_moves_with_what_is_in_it(zone: Zone, item: LoopbackItem) -> None:
    item.write("a/b/file", b"data")
    item.make_folder("c")
    zone.folder("a").rename_directory(zone.target("c/d"))
    assert item.paths() == ["c/d/b/file"]


def test_pages_of_a_folders_delete_only_look(zone: Zone, item: LoopbackItem, onelake: LoopbackOneLake) -> None:
    for number in range(5):
        item.write(f"a/{number}", b"data")
    onelake.storage.page_size = 2
    seen: list[int] = []
    zone.folder("a").delete_directory(raw_response_hook=lambda _: seen.append(len(item.paths())))
    assert seen == [5, 5, 0]
    assert item.names() == []


def test_a_folder_that_is_made_again_is_another(zone: Zone, item: LoopbackItem) -> None:
    folder = zone.folder("a")
    folder.create_directory()
    first = folder.get_directory_properties().etag
    item.write("a/b/file", b"data")
    assert folder.get_directory_properties().etag == first
    folder.delete_directory()
    folder.create_directory()
    assert folder.get_directory_properties().etag != first
