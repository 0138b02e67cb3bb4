"""OneLake without the network: a request in, an answer out, one at a time."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace

from mirror_assets_tests.worlds.onelake.account import Account, Item, Place
from mirror_assets_tests.worlds.onelake.blob import head, put_blob, read
from mirror_assets_tests.worlds.onelake.conditions import (
    ignored_headers,
    require_item,
    require_no_key,
    require_no_metadata,
)
from mirror_assets_tests.worlds.onelake.dfs import append, create, delete, flush, rename
from mirror_assets_tests.worlds.onelake.entra import STORAGE, Entra
from mirror_assets_tests.worlds.onelake.listing import list_blobs, list_paths
from mirror_assets_tests.worlds.onelake.messages import (
    NO_TOKEN,
    NOT_BUILT,
    NOT_HERE,
    WORKSPACE_MISSING,
    WRONG_TOKEN,
    Answer,
    Operation,
    Refusal,
    Refused,
    Request,
)

_ON_ITEM: dict[Operation, Callable[[Item, Request], Answer]] = {
    Operation.CREATE: create,
    Operation.CREATE_FOLDER: create,
    Operation.APPEND: append,
    Operation.FLUSH: flush,
    Operation.HEAD: head,
    Operation.READ: read,
    Operation.PUT_BLOB: put_blob,
}


def no_watch() -> None:
    """Do nothing: the default of `watch`."""


class Storage:
    """All workspaces behind their API. `page_size` ends listings.

    `signature` is that of a shared access signature that may read everything; without it, none is taken.
    `lock` is held while a request takes effect, and while `watch` looks at what it left.
    """

    def __init__(self, entra: Entra, base: str) -> None:
        self.account, self.lock, self.page_size = Account(), threading.RLock(), 5000
        self.watch: Callable[[], object] = no_watch
        self.signature: str | None = None
        self._entra, self._base = entra, base

    def path_of(self, url_path: str) -> str:
        """The path below the item that a URL's path names; empty when it names none."""
        try:
            return self.account.place(url_path).path
        except Refused:
            return ""

    def perform(self, request: Request) -> Answer:
        try:
            with self.lock:
                answer = self._performed(request)
                self.watch()
        except Refused as refused:
            answer = refused.refusal.answer(request)
        return replace(answer, headers={**answer.headers, **common_headers(request)})

    def _performed(self, request: Request) -> Answer:
        self._authorize(request)
        require_no_metadata(request)
        place = self.account.place(request.url_path)
        if request.operation in (Operation.LIST, Operation.LIST_BLOBS):
            return self._listed(place, request)
        if request.operation is Operation.HEAD and place.item is None:
            return Answer(200, {"x-ms-namespace-enabled": "true"})
        item = require_item(place)
        if request.operation is Operation.RENAME:
            return rename(self.account, item, request)
        if request.operation is Operation.DELETE:
            return delete(item, request, self.page_size)
        if request.operation not in _ON_ITEM:
            raise Refused(NOT_BUILT)
        return _ON_ITEM[request.operation](item, request)

    def _authorize(self, request: Request) -> None:
        if self.signature and request.query.get("sig") == self.signature and request.method in ("GET", "HEAD"):
            return
        require_no_key(request)
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer":
            raise Refused(self._challenging(NO_TOKEN))
        if not self._entra.accepts(token, STORAGE):
            raise Refused(self._challenging(WRONG_TOKEN))

    def _challenging(self, refusal: Refusal) -> Refusal:
        return replace(refusal, headers={"WWW-Authenticate": self._entra.challenge(self._base)})

    def _listed(self, place: Place, request: Request) -> Answer:
        if place.workspace is None:
            raise Refused(NOT_HERE)
        if place.item is not None:
            raise Refused(WORKSPACE_MISSING)
        if request.operation is Operation.LIST_BLOBS:
            return list_blobs(place.workspace, request, self.page_size)
        return list_paths(self.account, place.workspace, request, self.page_size)


def common_headers(request: Request) -> dict[str, str]:
    headers = {"x-ms-request-id": str(uuid.uuid4()), "x-ms-version": request.headers.get("x-ms-version", "2021-06-08")}
    if name := request.headers.get("x-ms-client-request-id"):
        headers["x-ms-client-request-id"] = name
    if ignored := ignored_headers(request):
        headers["x-ms-rejected-headers"] = ignored
    return headers
