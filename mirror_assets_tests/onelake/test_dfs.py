"""What the DFS endpoint answers to the real SDK (azure-storage-file-datalake)."""

from __future__ import annotations

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.filedatalake import DataLakeDirectoryClient, DataLakeFileClient, FileSystemClient

from mirror_assets_tests.onelake import LoopbackItem, LoopbackOneLake, Operation
from mirror_assets_tests.onelake.sdk import refused


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


def test_an_append_inside_committed_data_is_refused(zone: Zone) -> None:
    file = zone.file("file")
    file.create_file()
    file.append_data(b"data", 0, flush=True)
    with pytest.raises(HttpResponseError) as error:
        file.append_data(b"more", 2)
    assert refused(error.value) == (400, "InvalidQueryParameterValue")


def test_a_flush_must_name_the_length(zone: Zone) -> None:
    file = zone.file("file")
    file.create_file()
    file.append_data(b"data", 0)
    with pytest.raises(HttpResponseError) as error:
        file.flush_data(5)
    assert refused(error.value) == (400, "InvalidFlushPosition")


def test_a_body_that_is_not_its_md5_is_refused(zone: Zone) -> None:
    file = zone.file("file")
    file.create_file()
    with pytest.raises(HttpResponseError) as error:
        file.append_data(b"data", 0, headers={"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="})
    assert refused(error.value) == (400, "Md5Mismatch")


def test_creating_without_a_condition_empties_a_file(zone: Zone, item: LoopbackItem) -> None:
    item.write("file", b"data")
    zone.file("file").create_file()
    assert item.read("file") == b""


def test_creating_if_missing_refuses_a_file_that_is_there(zone: Zone, item: LoopbackItem) -> None:
    item.write("file", b"data")
    with pytest.raises(ResourceExistsError) as error:
        zone.file("file").create_file(match_condition=MatchConditions.IfMissing)
    assert refused(error.value) == (409, "PathAlreadyExists")
    assert item.read("file") == b"data"


def test_a_flush_can_depend_on_the_etag(zone: Zone, item: LoopbackItem) -> None:
    file = zone.file("file")
    created = file.create_file()
    file.append_data(b"mine", 0)
    item.write("file", b"")
    with pytest.raises(ResourceModifiedError) as error:
        file.flush_data(4, etag=str(created["etag"]), match_condition=MatchConditions.IfNotModified)
    assert refused(error.value) == (412, "ConditionNotMet")


def test_uploading_is_create_append_and_conditional_flush(
    zone: Zone, item: LoopbackItem, onelake: LoopbackOneLake
) -> None:
    zone.file("file").upload_data(b"0123456789", overwrite=True, chunk_size=4)
    assert item.read("file") == b"0123456789"
    assert onelake.log.counts() == {Operation.CREATE: 1, Operation.APPEND: 3, Operation.FLUSH: 1}


def test_uploading_without_overwriting_needs_the_file(zone: Zone) -> None:
    with pytest.raises(ResourceNotFoundError) as error:
        zone.file("file").upload_data(b"data", overwrite=False)
    assert refused(error.value) == (404, "PathNotFound")


def test_a_rename_keeps_the_etag(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"data")
    source = zone.file("from")
    etag = source.get_file_properties().etag
    moved = source.rename_file(
        zone.target("to"), source_etag=etag, source_match_condition=MatchConditions.IfNotModified
    )
    assert moved.get_file_properties().etag == etag
    assert (item.read("to"), item.names()) == (b"data", ["to"])


def test_a_rename_overwrites_unless_told_otherwise(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"new")
    item.write("to", b"old")
    with pytest.raises(ResourceExistsError) as error:
        zone.file("from").rename_file(zone.target("to"), match_condition=MatchConditions.IfMissing)
    assert refused(error.value) == (409, "PathAlreadyExists")
    zone.file("from").rename_file(zone.target("to"))
    assert item.read("to") == b"new"


def test_a_rename_of_another_content_is_refused(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"data")
    etag = zone.file("from").get_file_properties().etag
    item.write("from", b"other")
    with pytest.raises(HttpResponseError) as error:
        zone.file("from").rename_file(
            zone.target("to"), source_etag=etag, source_match_condition=MatchConditions.IfNotModified
        )
    assert refused(error.value) == (412, "SourceConditionNotMet")


def test_a_missing_source_is_said_before_a_taken_target(zone: Zone, item: LoopbackItem) -> None:
    item.write("to", b"data")
    with pytest.raises(ResourceNotFoundError) as error:
        zone.file("from").rename_file(zone.target("to"), match_condition=MatchConditions.IfMissing)
    assert refused(error.value) == (404, "SourcePathNotFound")


def test_a_rename_needs_the_targets_folder(zone: Zone, item: LoopbackItem) -> None:
    item.write("from", b"data")
    with pytest.raises(ResourceNotFoundError) as error:
        zone.file("from").rename_file(zone.target("a/to"))
    assert refused(error.value) == (404, "RenameDestinationParentPathNotFound")


def test_a_folder_moves_with_what_is_in_it(zone: Zone, item: LoopbackItem) -> None:
    item.write("a/b/file", b"data")
    item.make_folder("c")
    zone.folder("a").rename_directory(zone.target("c/d"))
    assert item.paths() == ["c/d/b/file"]


def test_a_folder_that_is_not_empty_is_not_replaced(zone: Zone, item: LoopbackItem) -> None:
    item.write("a/file", b"data")
    item.write("b/file", b"data")
    with pytest.raises(ResourceExistsError) as error:
        zone.folder("a").rename_directory(zone.target("b"))
    assert refused(error.value) == (409, "PathAlreadyExists")


def test_a_folder_cannot_move_into_itself(zone: Zone, item: LoopbackItem) -> None:
    item.write("a/file", b"data")
    with pytest.raises(HttpResponseError) as error:
        zone.folder("a").rename_directory(zone.target("a/b"))
    assert refused(error.value) == (400, "InvalidRenameSourcePath")


def test_a_file_is_deleted_if_it_has_the_etag(zone: Zone, item: LoopbackItem) -> None:
    item.write("file", b"data")
    etag = zone.file("file").get_file_properties().etag
    item.write("file", b"other")
    with pytest.raises(ResourceModifiedError) as error:
        zone.file("file").delete_file(etag=etag, match_condition=MatchConditions.IfNotModified)
    assert refused(error.value) == (412, "ConditionNotMet")
    zone.file("file").delete_file()
    with pytest.raises(ResourceNotFoundError) as missing:
        zone.file("file").delete_file()
    assert refused(missing.value) == (404, "PathNotFound")


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


def test_a_file_is_no_folder(zone: Zone, item: LoopbackItem) -> None:
    item.write("a", b"data")
    with pytest.raises(ResourceExistsError):
        zone.file("a/file").create_file()
    with pytest.raises(ResourceExistsError):
        zone.folder("a").create_directory()
