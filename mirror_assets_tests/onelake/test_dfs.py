"""What the DFS endpoint answers to the real SDK."""

from __future__ import annotations

from azure.storage.filedatalake import DataLakeFileClient, FileSystemClient

from mirror_assets_tests.onelake import LoopbackItem


def file_at(workspace: FileSystemClient, item: LoopbackItem, path: str) -> DataLakeFileClient:
    return workspace.get_file_client(f"{item.guid}/Files/LandingZone/{path}")


def test_a_file_can_be_read_when_it_is_flushed(workspace: FileSystemClient, item: LoopbackItem) -> None:
    file = file_at(workspace, item, "a/file")
    created = file.create_file()
    file.append_data(b"one ", 0)
    file.append_data(b"two", 4, validate_content=True)
    assert item.read("a/file") == b""
    flushed = file.flush_data(7)
    assert item.read("a/file") == b"one two"
    assert flushed["etag"] != created["etag"]
    assert file.download_file().readall() == b"one two"
    assert file.download_file(offset=4, length=3).readall() == b"two"
