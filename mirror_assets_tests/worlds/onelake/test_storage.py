"""The local OneLake is as strict as the real one, where no test of the product would fail if it were not.

Requests are asked without a network. `zones/test_store.py` asks through the real SDK: it has what a store relies on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_assets_tests.worlds.onelake.account import LANDING_ZONE
from mirror_assets_tests.worlds.onelake.dfs import md5_of
from mirror_assets_tests.worlds.onelake.entra import STORAGE, Entra, Principal
from mirror_assets_tests.worlds.onelake.messages import Answer, Request, operation_of
from mirror_assets_tests.worlds.onelake.storage import Storage

NAMES = ("a", "b", "c")
_BLOB = {"x-ms-blob-type": "BlockBlob"}


class Direct:
    """A landing zone that is asked directly, by a principal who has signed in."""

    def __init__(self) -> None:
        self.entra = Entra(Principal())
        self.storage = Storage(self.entra, "https://here")
        workspace = self.storage.account.add_workspace("workspace")
        self.item = self.storage.account.add_item(workspace, "item.MirroredDatabase")
        self.zone = f"/{workspace.guid}/{self.item.guid}/{LANDING_ZONE}"
        self.workspace = f"/{workspace.guid}"
        self.token = str(json.loads(self.sign_in().body)["access_token"])

    def sign_in(self, resource: str = STORAGE, **other: str) -> Answer:
        """The answer to a request for a token; `other` replaces fields of the form, or the tenant."""
        who = self.entra.principal
        form = {"grant_type": "client_credentials", "client_id": who.client, "client_secret": who.secret} | other
        body = "&".join(f"{name}={value}" for name, value in {**form, "resource": resource}.items()).encode()
        url_path = f"/{form.pop('tenant', who.tenant)}/oauth2/token"
        operation = operation_of("POST", url_path, {}, {})
        return self.entra.perform(Request("POST", url_path, {}, {}, body, operation, ""), "https://here")

    def ask(
        self,
        method: str,
        url_path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        sent = {"Authorization": f"Bearer {self.token}", "Content-Length": str(len(body)), **(headers or {})}
        operation = operation_of(method, url_path, query or {}, sent)
        path = self.storage.path_of(url_path)
        return self.storage.perform(Request(method, url_path, query or {}, sent, body, operation, path))

    def write(self, name: str, data: bytes = b"data") -> None:
        assert self.ask("PUT", f"{self.zone}/{name}", headers=_BLOB, body=data).status == 201


@pytest.fixture
def zone() -> Direct:
    return Direct()


def _refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.headers.get("x-ms-error-code", "")


_FLUSH = {"action": "flush", "position": "4"}
_SOURCE = "x-ms-rename-source"
_STALE = {"If-Match": '"0x0"'}
# The request, below the landing zone or from the root on; its headers and body; and the answer.
_REFUSALS: dict[str, tuple[str, dict[str, str], bytes, str]] = {
    "append inside committed data": ("PATCH file?action=append&position=2", {}, b"x", "400 InvalidQueryParameterValue"),
    "another MD5": ("PATCH file?action=append&position=4", {"Content-MD5": md5_of(b"y")}, b"x", "400 Md5Mismatch"),
    "flush of another length": ("PATCH file?action=flush&position=5", {}, b"", "400 InvalidFlushPosition"),
    "flush of another content": ("PATCH file?action=flush&position=4", _STALE, b"", "412 ConditionNotMet"),
    "flush with a body": ("PATCH file?action=flush&position=4", {}, b"data", "400 ContentLengthMustBeZero"),
    "create with a body": ("PUT file?resource=file", {}, b"data", "400 ContentLengthMustBeZero"),
    "delete of another content": ("DELETE file", _STALE, b"", "412 ConditionNotMet"),
    "delete of a folder with files": ("DELETE a", {}, b"", "409 DirectoryNotEmpty"),
    "rename that says resource": ("PUT to?resource=file", {_SOURCE: "file"}, b"", "400 UnsupportedHeader"),
    "rename over a folder with files": ("PUT b", {_SOURCE: "a"}, b"", "409 PathAlreadyExists"),
    "block": ("PUT file?comp=block", {}, b"x", "501 NotImplemented"),
    "lease": ("PUT file?comp=lease", {}, b"", "501 NotImplemented"),
    "metadata": ("PUT file", _BLOB | {"x-ms-meta-a": "b"}, b"", "501 NotImplemented"),
    "another kind of blob": ("PUT file", {"x-ms-blob-type": "PageBlob"}, b"", "501 NotImplemented"),
    "a folder that Fabric manages": ("DELETE {item}/Files", {}, b"", "403 OperationNotAllowedOnThePath"),
    "an item": ("PUT {item}?resource=directory", {}, b"", "403 OperationNotAllowedOnThePath"),
    "a workspace": ("DELETE {workspace}?restype=container", {}, b"", "403 OperationNotAllowed"),
    "an unknown item": ("HEAD {workspace}/00000000-0000-0000-0000-000000000000/Files", {}, b"", "404 PathNotFound"),
    "a name below a GUID": ("HEAD {workspace}/item.MirroredDatabase/Files", {}, b"", "400 FriendlyNameSupportDisabled"),
    "a GUID below a name": ("HEAD /workspace/{guid}/Files", {}, b"", "400 FriendlyNameSupportDisabled"),
    "a shared key": ("HEAD file", {"Authorization": "SharedKey x:AA"}, b"", "403 KeyBasedAuthenticationNotPermitted"),
    "a signature that was not issued": ("HEAD file?sig=AAAA", {}, b"", "403 AuthenticationFailed"),
    "no token": ("HEAD file", {"Authorization": ""}, b"", "401 NoAuthenticationInformation"),
    "a token that was not issued": ("HEAD file", {"Authorization": "Bearer x"}, b"", "401 InvalidAuthenticationInfo"),
}


@pytest.mark.parametrize("name", _REFUSALS)
def test_a_refused_request_changes_nothing(zone: Direct, name: str) -> None:
    request, headers, body, refusal = _REFUSALS[name]
    for path in ("file", "a/file", "b/file"):
        zone.write(path)
    before = zone.item.tree.nodes()
    item = f"{zone.workspace}/{zone.item.guid}"
    method, target = request.format(item=item, workspace=zone.workspace, guid=zone.item.guid).split(" ")
    path, _, query = target.partition("?")
    sent = {key: f"{zone.zone}/{value}" if key == _SOURCE else value for key, value in headers.items()}
    answer = zone.ask(
        method, path if path.startswith("/") else f"{zone.zone}/{path}", dict(parse_qsl(query)), sent, body
    )
    assert "{} {}".format(*_refused(answer)) == refusal
    assert zone.item.tree.nodes() == before


def test_only_the_principal_gets_a_token_and_it_is_good_for_its_audience_until_it_expires(zone: Direct) -> None:
    for other in ({"client_secret": "wrong"}, {"client_id": "unknown"}, {"tenant": "unknown"}):
        assert zone.sign_in(**other).status in (400, 401)
    zone.token = str(json.loads(zone.sign_in("https://api.fabric.microsoft.com").body)["access_token"])
    assert _refused(zone.ask("HEAD", zone.zone)) == (401, "InvalidAuthenticationInfo")
    zone.entra.lifetime = 0.0
    assert not zone.entra.accepts(str(json.loads(zone.sign_in().body)["access_token"]), STORAGE)
    assert zone.entra.principal.secret not in repr(zone.entra.principal)


def _opened(zone: Direct, data: bytes = b"data") -> str:
    path = f"{zone.zone}/file"
    zone.ask("PUT", path, {"resource": "file"})
    assert zone.ask("PATCH", path, {"action": "append", "position": "0"}, body=data).status == 202
    return path


def test_a_repeated_append_replaces(zone: Direct) -> None:
    path = _opened(zone)
    zone.ask("PATCH", path, {"action": "append", "position": "0"}, body=b"DATA")
    assert zone.ask("GET", path).body == b""
    zone.ask("PATCH", path, _FLUSH)
    assert zone.ask("GET", path).body == b"DATA"


def test_a_repeated_flush_changes_nothing(zone: Direct) -> None:
    path = _opened(zone)
    first, second = (zone.ask("PATCH", path, _FLUSH) for _ in range(2))
    assert (first.status, second.headers["ETag"]) == (200, first.headers["ETag"])


@given(
    st.lists(st.binary(min_size=1, max_size=8), min_size=1, max_size=6).flatmap(
        lambda chunks: st.tuples(st.just(chunks), st.permutations(range(len(chunks))), st.integers(0, 60))
    )
)
def test_chunks_may_come_in_any_order_but_the_length_must_fit(case: tuple[list[bytes], list[int], int]) -> None:
    chunks, order, guess = case
    zone, whole = Direct(), b"".join(chunks)
    path = f"{zone.zone}/file"
    zone.ask("PUT", path, {"resource": "file"})
    for index in order:
        position = sum(len(chunk) for chunk in chunks[:index])
        appended = zone.ask("PATCH", path, {"action": "append", "position": str(position)}, body=chunks[index])
        assert appended.status == 202
    for length in (guess, len(whole)):
        status = zone.ask("PATCH", path, {"action": "flush", "position": str(length)}).status
        read = zone.ask("GET", path).body
        assert (status, read) == ((200, whole) if length == len(whole) else (400, b""))


@given(st.sets(st.text("abc", min_size=1, max_size=3), max_size=12), st.integers(1, 13))
def test_pages_add_up(names: set[str], size: int) -> None:
    zone = Direct()
    for name in names:
        zone.ask("PUT", f"{zone.zone}/{name}", {"resource": "file"})
    query = {"resource": "filesystem", "directory": f"{zone.item.guid}/{LANDING_ZONE}", "maxResults": str(size)}
    found: list[str] = []
    while True:
        answer = zone.ask("GET", zone.workspace, query)
        page = [line["name"].rpartition("/")[2] for line in json.loads(answer.body)["paths"]]
        assert len(page) <= size
        found += page
        if "x-ms-continuation" not in answer.headers:
            break
        query["continuation"] = answer.headers["x-ms-continuation"]
    assert found == sorted(names)


ACTS = st.lists(st.tuples(st.sampled_from(["put", "rename", "swap"]), st.sampled_from(NAMES), st.sampled_from(NAMES)))


@given(ACTS)
def test_conditional_writes_lose_nothing_and_an_etag_names_one_content(
    acts: list[tuple[str, str, str]],
) -> None:
    """Puts of absent files, renames to absent names and swaps by ETag, against a model of a dictionary."""
    zone, model = Direct(), dict[str, bytes]()
    contents: dict[str, bytes] = {}
    for turn, (act, name, other) in enumerate(acts):
        data, path = b"%d" % turn, f"{zone.zone}/{name}"
        etag = zone.ask("HEAD", path).headers.get("ETag", '"none"')
        if act == "put":
            allowed = name not in model
            answer = zone.ask("PUT", path, headers=_BLOB | {"If-None-Match": "*"}, body=data)
            model |= {name: data} if allowed else {}
        elif act == "swap":
            allowed = name in model
            answer = zone.ask("PUT", path, headers=_BLOB | {"If-Match": etag}, body=data)
            model |= {name: data} if allowed else {}
        else:
            allowed = name in model and other not in model
            rename = {"x-ms-rename-source": path, "x-ms-source-if-match": etag, "If-None-Match": "*"}
            answer = zone.ask("PUT", f"{zone.zone}/{other}", headers=rename)
            if allowed:
                model[other] = model.pop(name)
        assert (answer.status == 201) == allowed
        for found in NAMES:
            read = zone.ask("GET", f"{zone.zone}/{found}")
            assert (read.body if read.status == 200 else None) == model.get(found)
            if read.status == 200:
                assert contents.setdefault(read.headers["ETag"], read.body) == read.body
