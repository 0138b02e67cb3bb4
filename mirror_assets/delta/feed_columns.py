"""The three columns that Delta's change feed adds to those of the table."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

CHANGE_TYPE = "_change_type"
COMMIT_VERSION = "_commit_version"
COMMIT_TIMESTAMP = "_commit_timestamp"


def is_new_row() -> Column:
    """Whether a row of a feed is what a key has after its commit, and not what it had before."""
    return F.col(CHANGE_TYPE).isin("insert", "update_postimage")
