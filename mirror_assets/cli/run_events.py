"""The log records of a Dagster run: their messages, the assets that they materialize, and lines of JSON."""

from __future__ import annotations

import logging

import dagster as dg

from mirror_assets.cli.json_log import print_line

_NUMBERS = {"dagster/partition_row_count": "rows"} | {
    x: x for x in ("files", "bytes", "covered_version", "lag_seconds")
}


class MessageOnly(logging.Formatter):
    """Formats messages as they were logged."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the message as it was logged, without the ids of run and step that Dagster adds."""
        meta = getattr(record, "dagster_meta", {})
        text = meta.get("orig_message") if isinstance(meta, dict) else None
        return str(text) if text else record.getMessage()


def logged_event(record: logging.LogRecord) -> dg.DagsterEvent | None:
    """Return the event of Dagster that the record logs, or None for a message."""
    meta = getattr(record, "dagster_meta", {})
    event = meta.get("dagster_event") if isinstance(meta, dict) else None
    return event if isinstance(event, dg.DagsterEvent) else None


def materialization(event: dg.DagsterEvent) -> dg.AssetMaterialization | None:
    """Return the materialization that the event records, or None for another event."""
    if event.event_type is not dg.DagsterEventType.ASSET_MATERIALIZATION:
        return None
    return event.step_materialization_data.materialization


class JsonLines(logging.Handler):
    """Prints the messages of a run, and each slice that has landed; other events of Dagster are omitted."""

    def __init__(self) -> None:
        """Print messages of every level."""
        super().__init__(logging.DEBUG)
        self.setFormatter(MessageOnly())

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message, or the numbers of the slice."""
        run = {"run": getattr(record, "dagster_meta", {}).get("run_id")}
        event = logged_event(record)
        if event is None:
            if record.levelno >= logging.INFO:
                print_line(record.levelname.lower(), self.format(record), run)
            return
        landed = materialization(event)
        if landed is not None and "covered_version" in landed.metadata:
            numbers = {name: landed.metadata[key].value for key, name in _NUMBERS.items() if key in landed.metadata}
            print_line("info", "the slice has landed", numbers | run)
