"""The rule over the places of histories, landing zone, mirror and sources."""

from __future__ import annotations

from mirror_assets.config.document import Document
from mirror_assets.config.rules import Mistakes, effective, overlap
from mirror_assets.features.history.history_settings import HistoryMode


def separate_histories(document: Document) -> Mistakes:
    """Refuse a folder of histories that overlaps with another one, if a table keeps a history."""
    tables, place = [("tables", name) for name in document.names("tables")], ("history", "path")
    kept = (HistoryMode.SLICES.value, HistoryMode.STREAM.value)
    if any(effective(document, table, "history") in kept for table in tables):
        for ours in (("landing_zone", "path"), ("mirror", "path")):
            yield from overlap(document, ours, place)
        for table in tables:
            yield from overlap(document, place, (*table, "source"))
