"""`_metadata.json` as the replicator understands it (reference `landing-zone` §4.2, §4.4, §4.31)."""

from __future__ import annotations

from dataclasses import dataclass

import pydantic

from mirror_assets.markers import Marker
from mirror_assets.replicator.errors import StopReason, TableStopped
from mirror_assets.storage import FileInfo, Store
from mirror_assets.storage.errors import FileTooLarge

_LIMIT = 1 << 20


class _Document(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="ignore", strict=True)

    keyColumns: tuple[str, ...] | None = None  # noqa: N815, Microsoft's spelling
    fileDetectionStrategy: str = "SequentialFileName"  # noqa: N815, Microsoft's spelling
    isUpsertDefaultRowMarker: bool = False  # noqa: N815, Microsoft's spelling
    FileFormat: str = "Parquet"


@dataclass(frozen=True)
class TableMetadata:
    """What the publisher declared: the key columns, and the marker of rows in files without one."""

    keys: tuple[str, ...]
    default_marker: Marker


def read_metadata(store: Store, info: FileInfo) -> TableMetadata:
    """The declaration in `_metadata.json`. Raises TableStopped for one that is invalid or asks for another form."""
    try:
        document = _Document.model_validate_json(store.read(info.path, _LIMIT).data)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "the document"
        raise TableStopped(info.path, StopReason.METADATA_INVALID, f"{where}: {first['msg']}") from None
    except FileTooLarge as error:
        raise TableStopped(info.path, StopReason.METADATA_INVALID, f"{error.size} bytes are too many") from None
    return _checked(info.path, document)


def _checked(path: str, document: _Document) -> TableMetadata:
    if document.fileDetectionStrategy != "SequentialFileName":
        why = f"fileDetectionStrategy {document.fileDetectionStrategy!r} is not replicated here"
        raise TableStopped(path, StopReason.METADATA_UNSUPPORTED, why)
    if document.FileFormat != "Parquet":
        raise TableStopped(
            path, StopReason.METADATA_UNSUPPORTED, f"FileFormat {document.FileFormat!r} is not read here"
        )
    keys = document.keyColumns or ()
    if len(set(keys)) != len(keys):
        raise TableStopped(path, StopReason.METADATA_INVALID, f"keyColumns {list(keys)} repeat a column")
    return TableMetadata(keys, Marker.UPSERT if document.isUpsertDefaultRowMarker else Marker.INSERT)
