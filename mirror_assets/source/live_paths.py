"""The live data files of a version in a few bytes each: enough to detect a file that is added or removed twice."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mirror_assets.source.actions import Metadata, Protocol


def _hashes(paths: Collection[str]) -> npt.NDArray[np.int64]:
    return np.unique(np.fromiter(map(hash, paths), np.int64, len(paths)))


@dataclass(frozen=True, eq=False)
class LivePaths:
    """The paths of a version's live files, as the log spells them, as sorted hashes; its metadata and protocol."""

    version: int
    metadata: Metadata
    protocol: Protocol
    hashes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, version: int, metadata: Metadata, protocol: Protocol, paths: Collection[str]) -> LivePaths:
        """Return those of a version with these live files."""
        return cls(version, metadata, protocol, _hashes(paths))

    def __contains__(self, path: str) -> bool:
        """Whether the file is live; of 10^9 paths that aren't, about one counts as live."""
        wanted = hash(path)
        at = int(np.searchsorted(self.hashes, wanted))
        return at < len(self.hashes) and int(self.hashes[at]) == wanted

    def after(
        self, version: int, metadata: Metadata, protocol: Protocol, live: Iterable[str], gone: Iterable[str]
    ) -> LivePaths:
        """Return those of a later version, at which these files are live, and those are not any more."""
        hashes = np.setdiff1d(self.hashes, _hashes(list(gone)), assume_unique=True)
        hashes = np.union1d(hashes, _hashes(list(live)))
        return replace(self, version=version, metadata=metadata, protocol=protocol, hashes=hashes)
