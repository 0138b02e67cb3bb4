"""Watches a table folder as a replicator with unlimited eyes would: what must hold of landing files at any moment."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from mirror_assets.landing.format import Manifest, Receipt, decode
from mirror_assets.landing.names import PROCESSED, READY_TO_DELETE, TableName, landing_number
from mirror_assets.landing.receipt import read_receipt
from mirror_assets.zones import FileInfo, LocalStore


@dataclass
class Epoch:
    """One existence of the table folder: the content of each file that ever landed in it, by number - 1."""

    identity: str | None
    digests: list[str] = field(default_factory=list)


class Watch:
    """What was ever seen landed. A look fails where a file is changed, doubled, partial, early or not as said."""

    def __init__(self, store: LocalStore, table: TableName) -> None:
        self._store, self._table = store, table
        self._epoch = Epoch(None)
        self.landed = 0

    def look(self) -> None:
        """Look at every file that is visible now."""
        identity = self._store.folder_identity(self._table.folder)
        if identity != self._epoch.identity:
            self._epoch = Epoch(identity)
        for number, info in sorted(self._visible().items()):
            digest = self._digest(info)
            if number <= len(self._epoch.digests):
                assert digest == self._epoch.digests[number - 1], f"number {number} landed twice, or was changed"
            else:
                assert number == len(self._epoch.digests) + 1, f"gap before number {number}"
                self._require_as_said(number, info)
                self._epoch.digests.append(digest)
                self.landed += 1

    def _visible(self) -> dict[int, FileInfo]:
        """Landing files by number, wherever the service has put them."""
        folder = self._table.folder
        found: dict[int, FileInfo] = {}
        for place in (folder, f"{folder}/{PROCESSED}", f"{folder}/{READY_TO_DELETE}"):
            for info in self._store.list(place):
                if number := landing_number(info.name):
                    assert number not in found, f"number {number} landed twice: it is in two places"
                    found[number] = info
        return found

    def _digest(self, info: FileInfo) -> str:
        return hashlib.sha256(self._store.local_path(info.path).read_bytes()).hexdigest()

    def _require_as_said(self, number: int, info: FileInfo) -> None:
        """Footer, name and kept manifest must agree on a file that has just landed."""
        receipt = read_receipt(self._store, info.path)
        assert receipt is not None, f"number {number} is partial, or not ours"
        kept = self._kept(receipt)
        assert kept.receipt == receipt, f"number {number} says {receipt}, its generation {kept.receipt}"
        entry = next((entry for entry in kept.entries if entry.number == number), None)
        assert entry is not None, f"number {number} is not among what its generation committed"
        assert (entry.etag, entry.bytes) == (info.etag, info.size), f"number {number} is not the part committed for it"

    def _kept(self, receipt: Receipt) -> Manifest:
        path = self._table.history(receipt.slice.epoch, receipt.generation)
        return decode(Manifest, path, self._store.read(path, 1 << 20).data)
