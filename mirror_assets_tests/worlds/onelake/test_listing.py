"""What the DFS endpoint lists."""

from __future__ import annotations

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.filedatalake import FileSystemClient, PathProperties

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake, Operation


def listed(workspace: FileSystemClient, item: LoopbackItem, folder: str, *, deep: bool = False) -> list[PathProperties]:
    return list(workspace.get_paths(f"{item.guid}/Files/LandingZone{folder}", recursive=deep))


def test_a_listing_says_what_a_head_says(workspace: FileSystemClient, item: LoopbackItem) -> None:
    item.write("a/file", b"data")
    path = f"{item.guid}/Files/LandingZone/a/file"
    (found,) = listed(workspace, item, "/a")
    properties = workspace.get_file_client(path).get_file_properties()
    assert (found.name, found.content_length, found.is_directory) == (path, 4, False)
    assert f'"{found.etag}"' == properties.etag
    assert found.last_modified == properties.last_modified.replace(tzinfo=None)
    assert found.creation_time.replace(microsecond=0) == properties.creation_time


def test_folders_are_listed_as_folders(workspace: FileSystemClient, item: LoopbackItem) -> None:
    item.write("a/b/file", b"data")
    names = [(found.name.rpartition("/")[2], found.is_directory) for found in listed(workspace, item, "", deep=True)]
    assert names == [("a", True), ("b", True), ("file", False)]
    assert [found.name.rpartition("/")[2] for found in listed(workspace, item, "")] == ["a"]


def test_a_folder_that_is_made_again_has_another_time_of_creation(
    workspace: FileSystemClient, item: LoopbackItem
) -> None:
    item.make_folder("a")
    (first,) = listed(workspace, item, "")
    item.remove("a")
    item.make_folder("a")
    (second,) = listed(workspace, item, "")
    assert second.creation_time > first.creation_time


def test_a_folder_that_is_missing_is_not_listed(workspace: FileSystemClient, item: LoopbackItem) -> None:
    with pytest.raises(ResourceNotFoundError):
        listed(workspace, item, "/a")


def test_listing_by_names_answers_guids(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    """What OneLake does here is not known (reference, 1.5 g); so nothing of ours may depend on it."""
    item.write("file", b"data")
    service = onelake.service()
    workspace, name = item.url_by_names.removeprefix(f"{onelake.url}/").split("/")[:2]
    (found,) = service.get_file_system_client(workspace).get_paths(f"{name}/Files/LandingZone")
    assert found.name == f"{item.guid}/Files/LandingZone/file"


def test_pages_of_any_size_hold_each_path_once(
    workspace: FileSystemClient, item: LoopbackItem, onelake: LoopbackOneLake
) -> None:
    for number in range(7):
        item.write(f"a/{number}", b"data")
    for size in (1, 3, 7, 8):
        onelake.storage.page_size = size
        onelake.log.reset()
        assert [found.name[-1] for found in listed(workspace, item, "/a")] == list("0123456")
        assert onelake.log.counts() == {Operation.LIST: -(-7 // size)}
