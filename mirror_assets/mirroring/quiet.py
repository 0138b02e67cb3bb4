"""Whether a table is as it was when nothing was left to do: a look that opens no table, and needs no JVM.

A mark is made by a complete look only: one that has ended what a killed publisher had committed, has found no rebuild
under way, and has planned nothing from the log. So as long as log, manifest and rebuild record are the very files that
it has seen, there is nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import CONTROL_FILE_LIMIT
from mirror_assets.source.listing import TipMark
from mirror_assets.source.log import SourceLog
from mirror_assets.storage import PathMissing, Store


@dataclass(frozen=True)
class QuietMark:
    """What a complete look has seen: the manifest and the rebuild record by their ETags, and the newest commit file.

    `rebuild_etag` is None where there was no record.
    """

    manifest_etag: str
    rebuild_etag: str | None
    tip: TipMark


def is_quiet(mark: QuietMark, table: TableName, store: Store, log: SourceLog) -> bool:
    """Whether all is as it was marked. Raises what the store and the log raise.

    It costs two requests of the landing zone, and of the source one listing; four requests instead where the log has
    more than a page of files.
    """
    return (
        _is_unchanged(store, table.manifest, mark.manifest_etag)
        and _is_unchanged(store, table.rebuild_record, mark.rebuild_etag)
        and log.is_still_tip(mark.tip)
    )


def _is_unchanged(store: Store, path: str, etag: str | None) -> bool:
    """Whether the file still has the ETag; None: whether there still is none."""
    if etag is None:
        return store.head(path) is None
    try:
        return store.read_if_changed(path, etag, CONTROL_FILE_LIMIT) is None
    except PathMissing:
        return False
