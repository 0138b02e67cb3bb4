"""What holds for every history of requests, asked without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from mirror_assets_tests.worlds.onelake.account import LANDING_ZONE
from mirror_assets_tests.worlds.onelake.entra import STORAGE, Entra, Principal
from mirror_assets_tests.worlds.onelake.messages import Answer, Request
from mirror_assets_tests.worlds.onelake.operations import operation_of
from mirror_assets_tests.worlds.onelake.storage import Storage

NAMES = ("a", "b", "c")


class Direct:
    """A landing zone that is asked directly, by a principal who has signed in."""

    def __init__(self) -> None:
        self._entra = Entra(Principal())
        self.storage = Storage(self._entra, "https://here")
        workspace = self.storage.account.add_workspace("workspace")
        self.item = self.storage.account.add_item(workspace, "item.MirroredDatabase")
        self.zone = f"/{workspace.guid}/{self.item.guid}/{LANDING_ZONE}"
        self.workspace = f"/{workspace.guid}"
        self._token = self._signed_in()

    def ask(
        self,
        method: str,
        url_path: str,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """The answer to a request."""
        sent = {"Authorization": f"Bearer {self._token}", "Content-Length": str(len(body)), **(headers or {})}
        operation = operation_of(method, url_path, query or {}, sent)
        path = self.storage.path_of(url_path)
        return self.storage.perform(Request(method, url_path, query or {}, sent, body, operation, path))

    def _signed_in(self) -> str:
        who = self._entra.principal
        form = f"grant_type=client_credentials&client_id={who.client}&client_secret={who.secret}&resource={STORAGE}"
        url_path = f"/{who.tenant}/oauth2/token"
        operation = operation_of("POST", url_path, {}, {})
        answer = self._entra.perform(Request("POST", url_path, {}, {}, form.encode(), operation, ""), "https://here")
        return str(json.loads(answer.body)["access_token"])


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
        assert (
            zone.ask("PATCH", path, {"action": "append", "position": str(position)}, body=chunks[index]).status == 202
        )
    for length in (guess, len(whole)):
        status = zone.ask("PATCH", path, {"action": "flush", "position": str(length)}).status
        read = zone.ask("GET", path).body
        assert (status, read) == ((200, whole) if length == len(whole) else (400, b""))


@given(st.binary(max_size=20), st.integers(0, 25), st.one_of(st.none(), st.integers(0, 25)))
def test_a_range_is_a_slice(data: bytes, first: int, length: int | None) -> None:
    zone = Direct()
    path = f"{zone.zone}/file"
    zone.ask("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=data)
    last = "" if length is None else str(first + length)
    answer = zone.ask("GET", path, headers={"Range": f"bytes={first}-{last}"})
    expected = data[first:] if length is None else data[first : first + length + 1]
    assert (answer.status, answer.body if expected else b"") == ((206, expected) if expected else (416, b""))


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
            put = {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}
            answer = zone.ask("PUT", path, headers=put, body=data)
            model |= {name: data} if allowed else {}
        elif act == "swap":
            allowed = name in model
            answer = zone.ask("PUT", path, headers={"x-ms-blob-type": "BlockBlob", "If-Match": etag}, body=data)
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
