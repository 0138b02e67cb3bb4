"""A Dagster logger for the command line: our own messages, without Dagster's events around them."""

import logging

import dagster as dg

PLAIN = "plain"


class _Message(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The message as it was logged, without run and step ids."""
        meta = getattr(record, "dagster_meta", {})
        text = meta.get("orig_message") if isinstance(meta, dict) else None
        return str(text) if text else record.getMessage()


def _printing(_context: dg.InitLoggerContext) -> logging.Logger:
    """A logger that prints one line a message."""
    logger = logging.Logger("mirror_assets", level=logging.INFO)
    handler = logging.StreamHandler()
    handler.setFormatter(_Message())
    # Commands tell what failed when they end, once and in their own words.
    handler.addFilter(lambda record: record.levelno < logging.ERROR)
    logger.addHandler(handler)
    return logger


plain_logger = dg.LoggerDefinition(
    _printing, description="Messages of information and above, on the error stream, without Dagster's event log."
)
