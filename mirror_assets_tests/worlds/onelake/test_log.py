"""The log says what was asked."""

from __future__ import annotations

from azure.storage.filedatalake import FileSystemClient

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake, Operation, Record


def test_a_record_says_what_when_and_how_much(
    onelake: LoopbackOneLake, workspace: FileSystemClient, item: LoopbackItem
) -> None:
    file = workspace.get_file_client(f"{item.guid}/Files/LandingZone/a/file")
    file.upload_data(b"data", overwrite=True)
    file.download_file().readall()
    path = "Files/LandingZone/a/file"
    assert onelake.log.storage == (
        Record(Operation.CREATE, "PUT", path, 201, 0, 0),
        Record(Operation.APPEND, "PATCH", path, 202, 4, 0),
        Record(Operation.FLUSH, "PATCH", path, 200, 0, 0),
        Record(Operation.READ, "GET", path, 206, 0, 4),
    )


def test_tokens_are_logged_but_are_no_requests_to_onelake(
    onelake: LoopbackOneLake, workspace: FileSystemClient, item: LoopbackItem
) -> None:
    workspace.get_file_client(f"{item.guid}/Files/LandingZone/file").exists()
    operations = [record.operation for record in onelake.log.records]
    assert operations == [Operation.DISCOVERY, Operation.TOKEN, Operation.HEAD]
    assert onelake.log.counts() == {Operation.HEAD: 1}


def test_requests_are_counted_by_path(
    onelake: LoopbackOneLake, workspace: FileSystemClient, item: LoopbackItem
) -> None:
    for name in ("a", "b"):
        workspace.get_file_client(f"{item.guid}/Files/LandingZone/{name}/file").create_file()
    list(workspace.get_paths(f"{item.guid}/Files/LandingZone/a"))
    assert onelake.log.counts("*/a*") == {Operation.CREATE: 1, Operation.LIST: 1}
    onelake.log.reset()
    assert onelake.log.counts() == {}
