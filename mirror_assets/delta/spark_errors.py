"""What can go wrong while Spark reads the feed or writes parts, and what its exceptions mean.

None of them proves that the source has lost anything: that takes its log and its store (`direct_lake.table.losses`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from mirror_assets.delta.spark_facts import SparkFacts, spark_facts
from mirror_assets.errors import ErrorCode, MirrorError, RebuildError, RetryError, SettingError, StopError
from mirror_assets.redaction import redacted_error
from mirror_assets.source.losses import FeedRefused, FileUnfound, HistoryRefused, SparkFailed, SparkInterrupted

_NO_FEED = "DELTA_MISSING_CHANGE_DATA"
_EXPIRED = "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION"
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
# Classes and words of Hadoop's file systems: the local one, S3's and Azure's.
_REFUSED = re.compile(
    r"AccessDenied|AccessControlException|NoAuthWithAWS|CredentialInitialization|ParentNotDirectory"
    r"|Permission denied|Read-only file system|Mkdirs failed to create|No AWS Credentials|, 40[13], "
)
_PASSING = re.compile(
    r"FetchFailed|ExecutorLost|BlockNotFound|SocketTimeout|SocketException|ConnectException|ConnectTimeout|UnknownHost"
    r"|ClosedChannel|NoRouteToHost|InterruptedIO|Missing an output location for shuffle|Connection reset"
    r"|Too many open files|Input/output error|Stale file handle|, (?:408|429|50[0234]), "
)


class DuplicateKey(StopError):
    """The source has several rows of one key, which keyed mirroring can't express."""

    code = ErrorCode.DUPLICATE_KEY

    def __init__(self, table: str, rows: int, samples: tuple[str, ...]) -> None:
        self.table, self.rows, self.samples = table, rows, samples
        super().__init__(
            f"{table}: {rows} changes repeat a key within one commit, for example {'; '.join(samples)}; "
            "nothing of the slice was published.",
            "remove the duplicate rows from the source, or choose `keys` that are unique; then run "
            f"`mirror-assets rebuild {table}`: the commit stays in the feed.",
        )


class RowsMisplaced(StopError):
    """Spark wrote rows into other files than the plan's; nothing was published."""

    code = ErrorCode.ROWS_MISPLACED

    def __init__(self, table: str, rows: int, first: int, last: int) -> None:
        self.table, self.rows, self.first, self.last = table, rows, first, last
        super().__init__(
            f"{table}: Spark wrote {rows} rows of versions {first} to {last} into other files than planned; nothing of "
            "the slice was published.",
            "run again; if it stays so, take settings that move partitions out of `spark.settings`, and report it.",
        )


class RowIdsUnfit(RebuildError):
    """Rows appear whose commit versions say that they were there before."""

    code = ErrorCode.ROW_IDS_UNFIT
    only_reading_tells = True

    def __init__(self, table: str, rows: int) -> None:
        self.table, self.rows = table, rows
        super().__init__(
            f"{table}: {rows} rows have come whose row commit versions are older than what has landed, and no RESTORE "
            "explains them; nothing of the slice was published.",
            f"run `mirror-assets rebuild {table}`.",
        )


class SparkOutOfSpace(RetryError):
    """Spark found no space left; nothing was published."""

    code = ErrorCode.STORE_FULL

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: no space left for Spark: {why}.", "free space where it says and run again; nothing was lost."
        )


class SparkRefused(SettingError):
    """Spark may not read or write what it was asked to."""

    code = ErrorCode.STORE_DENIED

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(
            f"{place}: Spark was refused: {why}.",
            "give the account that Spark runs as read and write on what it names, and its credentials; then run again.",
        )


class SessionUnfit(SettingError):
    """The Spark session has no way to read what is asked for."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, what: str, versions: Sequence[str]) -> None:
        super().__init__(
            f"{what} reads through Delta's own classes, which this Spark session does not offer.",
            f"use a classic session, not Spark Connect, with delta-spark {' or '.join(versions)}.",
        )


class SparkNotStarted(SettingError):
    """Spark did not start, or refused a setting."""

    code = ErrorCode.SESSION_UNFIT

    def __init__(self, why: str) -> None:
        super().__init__(
            f"Spark did not start: {why}.",
            "mend what it names, in `spark.settings` or where Spark runs, then run again.",
        )


class PackageRefused(SettingError):
    """`spark.jars.packages` names a Delta that is not the installed delta-spark's."""

    code = ErrorCode.CONFIG_INVALID

    def __init__(self, wanted: str, installed: str) -> None:
        self.wanted, self.installed = wanted, installed
        super().__init__(
            f"spark.settings: spark.jars.packages names {wanted}; the installed delta-spark needs {installed}.",
            "leave it out, as Delta's JARs are there without it; for another Delta install another delta-spark.",
        )


def spark_error(error: Exception, place: str) -> MirrorError:
    """The error of ours for what Spark raises; `place` names what it was at: a table, and what of it."""
    return _meaning(spark_facts(error), place)


def _meaning(facts: SparkFacts, place: str) -> MirrorError:
    if _NO_SPACE.search(facts.text):
        return SparkOutOfSpace(place, facts.why)
    if _NO_FEED in facts.conditions:
        return FeedRefused(place, facts.why)
    if _EXPIRED in facts.conditions:
        return HistoryRefused(place, facts.why)
    if facts.unfound is not None:
        return FileUnfound(place, facts.unfound)
    said = f"{' '.join(facts.names)}\n{facts.text}"
    if _REFUSED.search(said):
        return SparkRefused(place, facts.why)
    return (SparkInterrupted if _PASSING.search(said) else SparkFailed)(place, facts.why)


@contextmanager
def spark_errors(place: str) -> Iterator[None]:
    """Raise what Spark raises in the block as an error of ours; `place` names what it was at."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = redacted_error(error)
        raise spark_error(told, place) from told
