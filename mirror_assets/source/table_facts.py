"""What of a table decides whether it can be mirrored, read without its files: for many tables at once."""

from __future__ import annotations

import json
from dataclasses import dataclass

from deltalake import DeltaTable

from mirror_assets.source.access import Access
from mirror_assets.source.actions import Metadata
from mirror_assets.source.errors import LogGap, SourceUnreadable
from mirror_assets.source.schema import canonical
from mirror_assets.source.storage_errors import translated


@dataclass(frozen=True)
class TableFacts:
    """A table's id, what its properties switch on, and the names of its columns, in order."""

    table_id: str
    feed_enabled: bool
    row_tracking: bool
    columns: tuple[str, ...]


def table_facts(access: Access) -> TableFacts:
    """Return the facts of the table at its newest version.

    Raises SourceNotDelta, SourceUnreadable, SourceUnsupported, CatalogManaged, NoColumns, AddressOfDatabricks
    (SettingError) and SourceUnavailable (RetryError).
    """
    uri = access.uri
    try:
        with translated(uri):
            table = DeltaTable(uri, storage_options=dict(access.storage_options()))
            raw, schema = table.metadata(), table.schema().to_json()
    except (LogGap, FileNotFoundError) as gap:
        raise SourceUnreadable(uri, str(gap)) from gap
    about = Metadata(str(raw.id), canonical(schema), raw.configuration, tuple(raw.partition_columns))
    columns = tuple(field["name"] for field in json.loads(schema)["fields"])
    return TableFacts(about.table_id, about.feed_enabled, about.row_tracking, columns)
