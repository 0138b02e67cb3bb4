"""What switching a table's change data feed on takes; nothing here ever does it by itself."""

from __future__ import annotations

from mirror_assets.source.actions import Protocol

_FEATURE = "changeDataFeed"
# From writer version 4 on, writers know the feed; from 7 on, a table lists what its writers must know.
_KNOWS_FEED, _LISTS_FEATURES = 4, 7


def how_to_enable(uri: str, protocol: Protocol) -> str:
    """The statement that switches the feed on, and what it does to the table's protocol."""
    return (
        f"run `ALTER TABLE delta.`{uri}` SET TBLPROPERTIES (delta.enableChangeDataFeed = true)`, then run again. "
        f"{_consequence(protocol)}"
    )


def _consequence(protocol: Protocol) -> str:
    if _FEATURE in protocol.features or _KNOWS_FEED <= protocol.writer < _LISTS_FEATURES:
        return f"The table's writer version {protocol.writer} stays as it is: its writers know the feed."
    raised = (
        "" if protocol.writer >= _LISTS_FEATURES else f" from writer version {protocol.writer} to {_LISTS_FEATURES}"
    )
    return (
        f"It raises the table's protocol{raised}, with the table feature {_FEATURE}: writers that don't know it can't "
        "write the table afterwards; readers are not affected."
    )
