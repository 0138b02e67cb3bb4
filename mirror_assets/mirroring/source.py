"""A table's settings against its source, before anything of it runs."""

from __future__ import annotations

from collections.abc import Sequence

from mirror_assets.config import Changes, Config, SourceColumn, TableSettings, missing_columns, source_problems
from mirror_assets.errors import ErrorCode, SettingError
from mirror_assets.source.actions import Protocol
from mirror_assets.source.feed_property import how_to_enable
from mirror_assets.source.state import SourceState, source_columns


class FeedOff(SettingError):
    """The source does not record its change data feed."""

    code = ErrorCode.FEED_DISABLED

    def __init__(self, table: str, uri: str, protocol: Protocol) -> None:
        self.table, self.uri, self.protocol = table, uri, protocol
        super().__init__(
            f"{table}: the change data feed of {uri} is off, so its changes can't be read.",
            f"{how_to_enable(uri, protocol)} The feed begins with that commit: what is in the table by then lands as a "
            "snapshot.",
        )


class RowTrackingOff(SettingError):
    """The source gives its rows no ids."""

    code = ErrorCode.ROW_TRACKING_DISABLED

    def __init__(self, table: str, uri: str) -> None:
        self.table, self.uri = table, uri
        super().__init__(
            f"{table}: row tracking of {uri} is off, so its changes can't be told from its files.",
            f"run `ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableRowTracking = true)` (a writer feature: "
            "older writers can't write the table afterwards, every reader can read it), then run again.",
        )


def check_source(config: Config, table: TableSettings, state: SourceState) -> None:
    """Raises ConfigInvalid with the lines of settings that don't fit the source, FeedOff and RowTrackingOff."""
    columns = tuple(SourceColumn(name, type_) for name, type_ in source_columns(state))
    problems = source_problems(table, columns)
    if problems:
        raise config.invalid(problems)
    if table.changes is Changes.FEED and not state.feed_enabled:
        raise FeedOff(str(table.name), table.source, state.protocol)
    if table.changes is Changes.ROW_TRACKING and not state.metadata.row_tracking:
        raise RowTrackingOff(str(table.name), table.source)


def check_columns(config: Config, table: TableSettings, state: SourceState, landed: Sequence[str]) -> None:
    """Raises ConfigInvalid with the lines of chosen columns that neither the source has nor the mirror ever had."""
    problems = missing_columns(table, [*(name for name, _ in source_columns(state)), *landed])
    if problems:
        raise config.invalid(problems)
