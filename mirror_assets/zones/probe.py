"""Probes the store for the atomicity guarantees that publishing exactly once needs (docs/exactly-once.md).

It writes into a scratch folder that has no reader. OneLake's documentation does not state all of these guarantees, so
`mirror-assets doctor` probes the real item.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.errors import MirrorError, RetryError, SettingError
from mirror_assets.zones.errors import PathChanged, PathExists, PathMissing
from mirror_assets.zones.store import Content, Store

if TYPE_CHECKING:
    from azure.core.pipeline import PipelineResponse
    from azure.core.rest import HttpRequest, HttpResponse

_RETRY_HEADERS = ("Retry-After", "x-ms-retry-after-ms", "RateLimit-Remaining", "x-ms-ratelimit-remaining")
_LIMIT = 1 << 20
_LARGE = (8 << 20) + 1

Check = Callable[[Store, str], str | None]


@dataclass(frozen=True)
class Diagnosis:
    """The result of one probe; `saw` is the problem, or the store's answers if there is none.

    `ends`: the store rejects all requests, or did not answer, so no other probe would find more.
    """

    question: str
    passed: bool
    saw: str
    next_step: str = ""
    ends: bool = False


class ResponseRecorder:
    """A hook of a store's clients that records the answers: status, error code and Retry-After."""

    def __init__(self) -> None:
        self._heard: list[str] = []
        self.versions: set[str] = set()

    def __call__(self, response: PipelineResponse[HttpRequest, HttpResponse]) -> None:
        """Record an answer; nothing recorded is secret."""
        answer, request = response.http_response, response.http_request
        code = answer.headers.get("x-ms-error-code", "")
        waiting = [f"{name}: {answer.headers[name]}" for name in _RETRY_HEADERS if name in answer.headers]
        self._heard.append(" ".join([request.method, str(answer.status_code), code, *waiting]).strip())
        if version := answer.headers.get("x-ms-version"):
            self.versions.add(version)

    def heard(self) -> str:
        """Return the answers recorded since the last call, as one line."""
        heard, self._heard = self._heard, []
        return ", ".join(heard)


def examine(store: Store, scratch: str, heard: Callable[[], str]) -> Iterator[Diagnosis]:
    """Yield the result of each probe, in order, up to one that ends them; `heard` returns the store's newest answers.

    Makes a folder below `scratch` and deletes it. A store's error becomes a result: nothing is raised.
    """
    folder = f"{scratch}/doctor-{uuid.uuid4().hex}"
    for number, (question, check) in enumerate(QUESTIONS.items()):
        found = _diagnosis(question, check, store, f"{folder}/{number}", heard)
        yield found
        if found.ends:
            return
    yield _diagnosis("is a deleted folder removed?", _gone, store, folder, heard)


def _diagnosis(question: str, check: Check, store: Store, folder: str, heard: Callable[[], str]) -> Diagnosis:
    try:
        wrong = check(store, folder)
    except MirrorError as error:
        what = f"{error.what.removesuffix('.')} ({answers})" if (answers := heard()) else error.what
        ends = isinstance(error, SettingError | RetryError)
        return Diagnosis(question, passed=False, saw=what, next_step=error.next_step, ends=ends)
    answers = heard()
    return Diagnosis(question, wrong is None, answers if wrong is None else f"{wrong} {answers}".strip())


def _refuses(error: type[MirrorError], request: Callable[[Store, str, str], object]) -> Check:
    """Return a probe of a request that must be refused with this error, and change none of two files.

    The request gets the folder, and an ETag that `file` had before its newest content.
    """

    def check(store: Store, folder: str) -> str | None:
        spent = store.create(f"{folder}/file", b"one")
        file = Content(b"two", store.replace(f"{folder}/file", b"two", spent))
        taken = Content(b"three", store.create(f"{folder}/taken", b"three"))
        try:
            request(store, folder, spent)
        except error:
            found = [store.read(f"{folder}/{name}", _LIMIT) for name in ("file", "taken")]
            return None if found == [file, taken] else "it was refused, but a file has another content or ETag"
        return "it was not refused"

    return check


def _onto_a_taken_target(store: Store, folder: str, _spent: str) -> None:
    store.rename(f"{folder}/file", f"{folder}/taken", store.read(f"{folder}/file", _LIMIT).etag)


def _rename(store: Store, folder: str) -> str | None:
    etag = store.create(f"{folder}/source", b"one")
    store.rename(f"{folder}/source", f"{folder}/target", etag)
    if store.head(f"{folder}/source") is not None:
        return "the source still exists"
    return None if store.read(f"{folder}/target", _LIMIT).data == b"one" else "the target has another content"


def _etag_kept(store: Store, folder: str) -> str | None:
    etag = store.create(f"{folder}/source", b"one")
    store.rename(f"{folder}/source", f"{folder}/target", etag)
    found = store.head(f"{folder}/target")
    return None if found is not None and found.etag == etag else "it is another ETag afterwards (safe, but slower)"


def _moved_once(store: Store, folder: str) -> str | None:
    etag = store.create(f"{folder}/source", b"one")
    store.rename(f"{folder}/source", f"{folder}/first", etag)
    try:
        store.rename(f"{folder}/source", f"{folder}/second", etag)
    except PathMissing:
        return None
    return "one file was moved twice"


def _listed(store: Store, folder: str) -> str | None:
    etags = {f"{folder}/{name}": store.create(f"{folder}/{name}", name.encode()) for name in ("a", "b c", "ü")}
    found = {info.path: info.etag for info in store.list(folder)}
    return None if found == etags else f"listed {sorted(found)} with other ETags or names"


def _large(store: Store, folder: str) -> str | None:
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "large"
        source.write_bytes(b"x" * _LARGE)
        info = store.upload(source, f"{folder}/large")
    store.rename(info.path, f"{folder}/target", info.etag)
    found = store.head(f"{folder}/target")
    return None if found is not None and found.size == _LARGE else "it has another size"


def _gone(store: Store, folder: str) -> str | None:
    store.delete_tree(folder)
    return None if store.folder_identity(folder) is None else "it still exists"


QUESTIONS: dict[str, Check] = {
    "is a file written only where there is none?": _refuses(
        PathExists, lambda store, folder, _: store.create(f"{folder}/taken", b"four")
    ),
    "is a file replaced only while it has the ETag that was read?": _refuses(
        PathChanged, lambda store, folder, spent: store.replace(f"{folder}/file", b"four", spent)
    ),
    "does a rename move a file at once?": _rename,
    "does a file keep its ETag when it is renamed?": _etag_kept,
    "does a rename refuse a target that is taken?": _refuses(PathExists, _onto_a_taken_target),
    "does a rename refuse a source that has changed?": _refuses(
        PathChanged, lambda store, folder, spent: store.rename(f"{folder}/file", f"{folder}/target", spent)
    ),
    "can one file be moved only once?": _moved_once,
    "does a listing show new files with their ETags?": _listed,
    "is a file in several pieces whole, and can it be renamed?": _large,
}
