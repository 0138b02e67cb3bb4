"""Rebuilds in the middle, for tests of what comes then."""

from __future__ import annotations

from mirror_assets.landing.names import TableName
from mirror_assets.landing.rebuild import RebuildRecord, RebuildStep, advance_rebuild, begin_rebuild, drop_table_folder
from mirror_assets.landing.steps import Steps


def dropping(table: TableName) -> Steps[RebuildRecord]:
    """A rebuild that may drop the table folder now."""
    record = yield from begin_rebuild(table)
    return (yield from advance_rebuild(table, record, RebuildStep.DROPPING))


def loading(table: TableName) -> Steps[RebuildRecord]:
    """A rebuild that has dropped the table folder and may load its snapshot."""
    record = yield from dropping(table)
    yield from drop_table_folder(table, record)
    return (yield from advance_rebuild(table, record, RebuildStep.LOADING))
