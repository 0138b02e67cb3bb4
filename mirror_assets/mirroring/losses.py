"""What keeps a step of a slice from reading its source: a loss only where log and store prove it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mirror_assets.config import Changes, TableSettings
from mirror_assets.errors import MirrorError
from mirror_assets.landing.format import SliceKind
from mirror_assets.landing.names import SliceKey
from mirror_assets.mirroring.work import TableWork
from mirror_assets.source.losses import SourceRead, proved


def source_read(table: TableSettings, kind: SliceKind, key: SliceKey) -> SourceRead:
    """What of its source a slice is made from."""
    if kind is SliceKind.SNAPSHOT:
        return SourceRead(key.last, key.last, versions=(key.last,))
    if table.changes is Changes.ROW_TRACKING:
        return SourceRead(key.first, key.last, versions=(key.first - 1, key.last))
    return SourceRead(key.first, key.last)


@contextmanager
def reading(work: TableWork, read: SourceRead) -> Iterator[None]:
    """Raise what Spark's errors in the block mean once log and store have been asked: see `proved`."""
    try:
        yield
    except MirrorError as error:
        meant = proved(str(work.name), work.log, read, error)
        if meant is error:
            raise
        raise meant from error
