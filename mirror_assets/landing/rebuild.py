"""The rebuild record: a rebuild's step and life, outside the table folder that it drops (design §4)."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mirror_assets.landing.format import decode, encode
from mirror_assets.landing.names import TableName
from mirror_assets.landing.steps import Create, Delete, DeleteTree, Replace, Steps, read
from mirror_assets.storage import PathExists


class RebuildStep(str, Enum):
    """How far a rebuild is; the order is Microsoft's (reference `landing-zone` §4.35)."""

    DROPPING = "dropping the table folder"
    LOADING = "loading the snapshot"
    RETURNING = "waiting for the table to come back"


class RebuildRecord(BaseModel):
    """`_rebuild/<table>.json`: publishers refuse while it exists; `rebuild` continues from its step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    table: str
    life: Annotated[int, Field(ge=1)]
    step: RebuildStep


def read_rebuild(table: TableName) -> Steps[RebuildRecord | None]:
    """The record of a rebuild under way, or None. Raises ManifestCorrupt."""
    content = yield from read(table.rebuild_record)
    return decode(RebuildRecord, table.rebuild_record, content.data) if content else None


def begin_rebuild(table: TableName, life: int) -> Steps[RebuildRecord]:
    """The rebuild under way, or a new one that gives the table its next `life`."""
    record = RebuildRecord(table=str(table), life=life, step=RebuildStep.DROPPING)
    try:
        yield Create(table.rebuild_record, encode(record))
    except PathExists:
        found = yield from read_rebuild(table)
        return found or record
    return record


def advance_rebuild(table: TableName, record: RebuildRecord, step: RebuildStep) -> Steps[RebuildRecord]:
    """The record moved on to `step`; by compare-and-swap, so that two rebuilds can't undo each other."""
    content = yield from read(table.rebuild_record)
    moved = record.model_copy(update={"step": step})
    if content is not None:
        yield Replace(table.rebuild_record, encode(moved), content.etag)
    return moved


def drop_table_folder(table: TableName) -> Steps[None]:
    """Delete the table folder and everything staged for it: what was staged belongs to the life that ends."""
    yield DeleteTree(table.scratch)
    yield DeleteTree(table.folder)


def finish_rebuild(table: TableName) -> Steps[None]:
    """Let publishers go on."""
    yield Delete(table.rebuild_record)
