"""What a run logs as lines of JSON; see `json_log`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import dagster as dg

from mirror_assets.cli.json_log import print_line

_NUMBERS = {"dagster/partition_row_count": "rows"} | {
    x: x for x in ("files", "bytes", "covered_version", "lag_seconds")
}


class JsonLines(logging.Handler):
    """Prints what a run logs, and each slice that has landed; other events of Dagster are left out."""

    def __init__(self, formatter: logging.Formatter) -> None:
        """Take the text of a message from the formatter."""
        super().__init__(logging.DEBUG)
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message, or the event."""
        meta = getattr(record, "dagster_meta", {})
        details = meta if isinstance(meta, Mapping) else {}
        event, run = details.get("dagster_event"), {"run": details.get("run_id")}
        if isinstance(event, dg.DagsterEvent):
            numbers = _landed(event)
            if numbers:
                print_line("info", "the slice has landed", numbers | run)
        elif record.levelno >= logging.INFO:
            print_line(record.levelname.lower(), self.format(record), run)


def _landed(event: dg.DagsterEvent) -> dict[str, object]:
    """Return the numbers of a landed slice; empty for any other event."""
    if event.event_type is not dg.DagsterEventType.ASSET_MATERIALIZATION:
        return {}
    metadata = event.step_materialization_data.materialization.metadata
    if "covered_version" not in metadata:
        return {}
    return {name: metadata[key].value for key, name in _NUMBERS.items() if key in metadata}
