"""What OneLake refuses where Azure Storage would not."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.filedatalake import FileSystemClient

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake
from mirror_assets_tests.worlds.onelake.raw import RawAnswer, ask, signed_in
from mirror_assets_tests.worlds.onelake.sdk import refused

Ask = Callable[..., RawAnswer]


@pytest.fixture
def zone(item: LoopbackItem) -> str:
    return f"/{item.workspace}/{item.guid}/Files/LandingZone"


@pytest.fixture
def requested(onelake: LoopbackOneLake) -> Ask:
    token = signed_in(onelake)

    def asks(method: str, target: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> RawAnswer:
        return ask(onelake, method, target, {**token, **(headers or {})}, body)

    return asks


def test_workspaces_are_made_by_fabric_alone(onelake: LoopbackOneLake, workspace: FileSystemClient) -> None:
    with onelake.service() as service, pytest.raises(HttpResponseError) as made:
        service.create_file_system("mine")
    with pytest.raises(HttpResponseError) as deleted:
        workspace.delete_file_system()
    assert refused(deleted.value) == (403, "OperationNotAllowed")
    assert refused(made.value)[0] in (403, 404)


@pytest.mark.parametrize("path", ["", "/Mine", "/Files", "/Tables"])
def test_items_and_their_first_level_are_fabrics(workspace: FileSystemClient, item: LoopbackItem, path: str) -> None:
    folder = workspace.get_directory_client(f"{item.guid}{path}")
    for act in (folder.create_directory, folder.delete_directory):
        with pytest.raises(HttpResponseError) as error:
            act()
        assert refused(error.value) == (403, "OperationNotAllowedOnThePath")
    with pytest.raises(HttpResponseError) as moved:
        folder.rename_directory(f"{item.workspace}/{item.guid}/Files/LandingZone/stolen")
    assert refused(moved.value)[0] in (403, 404)
    assert item.names() == []


def test_an_unknown_workspace_or_item_is_missing(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    for workspace, guid in ((nobody, item.guid), (item.workspace, nobody)):
        with onelake.service() as service, pytest.raises(HttpResponseError) as error:
            service.get_file_client(workspace, f"{guid}/Files/LandingZone/file").create_file()
        assert refused(error.value)[0] == 404


def test_guids_and_names_do_not_mix(requested: Ask, item: LoopbackItem, onelake: LoopbackOneLake) -> None:
    workspace, name = item.url_by_names.removeprefix(f"{onelake.url}/").split("/")[:2]
    item.write("file", b"data")
    for first, second, status in (
        (item.workspace, item.guid, 200),
        (item.workspace.upper(), item.guid.upper(), 200),
        (workspace, name, 200),
        (item.workspace, name, 400),
        (workspace, item.guid, 400),
    ):
        answer = requested("HEAD", f"/{first}/{second}/Files/LandingZone/file")
        assert answer.status == status
        assert (answer.headers.get("x-ms-error-code") == "FriendlyNameSupportDisabled") == (status == 400)


def test_keys_and_signatures_are_refused(onelake: LoopbackOneLake, zone: str) -> None:
    key = ask(onelake, "HEAD", zone, {"Authorization": "SharedKey onelake:AAAA"})
    signature = ask(onelake, "HEAD", f"{zone}?sv=2024-01-01&sig=AAAA")
    assert key.refused == (403, "KeyBasedAuthenticationNotPermitted")
    assert signature.refused == (403, "AuthenticationFailed")


def test_permission_headers_are_ignored_and_named(requested: Ask, zone: str) -> None:
    answer = requested("PUT", f"{zone}/file?resource=file", {"x-ms-permissions": "rwx------", "x-ms-owner": "me"})
    assert answer.status == 201
    assert answer.headers["x-ms-rejected-headers"] == "x-ms-owner,x-ms-permissions"


def test_a_rename_must_not_say_resource(requested: Ask, zone: str, item: LoopbackItem) -> None:
    item.write("from", b"data")
    source = {"x-ms-rename-source": f"{zone}/from"}
    assert requested("PUT", f"{zone}/to?resource=file", source).refused == (400, "UnsupportedHeader")
    assert requested("PUT", f"{zone}/to?mode=legacy", source).status == 201
    assert item.names() == ["to"]


def test_create_and_flush_take_no_body(requested: Ask, zone: str, item: LoopbackItem) -> None:
    item.write("file", b"data")
    for method, target in (("PUT", f"{zone}/file?resource=file"), ("PATCH", f"{zone}/file?action=flush&position=4")):
        assert requested(method, target, body=b"data").refused == (400, "ContentLengthMustBeZero")
        unsaid = requested(method, target, {"Transfer-Encoding": "chunked"}, b"0\r\n\r\n")
        assert unsaid.refused == (400, "ContentLengthMustBeZero")
    assert item.read("file") == b"data"


def test_a_file_made_by_dfs_takes_no_blocks(requested: Ask, zone: str) -> None:
    assert requested("PUT", f"{zone}/file?resource=file").status == 201
    answer = requested("PUT", f"{zone}/file?comp=block&blockid=AAAA", body=b"data")
    assert answer.refused == (409, "BlobOperationNotSupported")


@pytest.mark.parametrize(
    ("method", "target", "headers"),
    [
        ("PUT", "?comp=lease", {"x-ms-lease-action": "acquire"}),
        ("PUT", "?comp=metadata", {"x-ms-meta-a": "b"}),
        ("PUT", "?comp=block&blockid=AAAA", {}),
        ("PUT", "", {"x-ms-copy-source": "https://elsewhere/file"}),
        ("PUT", "", {"x-ms-blob-type": "PageBlob"}),
        ("PUT", "", {"x-ms-blob-type": "BlockBlob", "x-ms-meta-a": "b"}),
        ("PATCH", "?action=setAccessControl", {}),
        ("POST", "", {"x-ms-lease-action": "acquire"}),
    ],
)
def test_what_we_never_send_is_not_built(
    requested: Ask, zone: str, item: LoopbackItem, method: str, target: str, headers: Mapping[str, str]
) -> None:
    assert requested(method, f"{zone}/file{target}", headers).refused == (501, "NotImplemented")
    assert item.paths() == []


def test_a_rename_into_another_item_is_not_built(requested: Ask, onelake: LoopbackOneLake, zone: str) -> None:
    other = onelake.new_item()
    other.write("from", b"data")
    source = f"/{other.workspace}/{other.guid}/Files/LandingZone/from"
    assert requested("PUT", f"{zone}/to", {"x-ms-rename-source": source}).refused == (501, "NotImplemented")
    assert other.names() == ["from"]
