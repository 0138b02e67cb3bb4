"""Translates exceptions of Spark and Delta into MirrorErrors, by the exception classes and messages of the JVM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from mirror_assets.encode.errors import EXPRESSION_FAILED, SPARK_DENIED, SPARK_DISK_FULL, TYPE_UNREADABLE
from mirror_assets.errors import ErrorCode, MirrorError
from mirror_assets.lakes.store_faults import store_error, store_named
from mirror_assets.redaction import redacted_error
from mirror_assets.source.errors import (
    DELTA_MISSING,
    FILE_DAMAGED,
    FILE_UNFOUND,
    SPARK_FAILED,
    SPARK_INTERRUPTED,
)
from mirror_assets.spark_api import SPARK_ERRORS, sql_state
from mirror_assets.spark_messages import spark_facts

_DAMAGED = re.compile(
    r"[Cc]hecksum ?(?:error|Exception)|is not a Parquet file|[Cc]ould not read footer|CANNOT_READ_FILE_FOOTER"
    r"|ParquetDecodingException|EOFException|Reached the end of stream|ZstdException|can not read class org\.apache"
)
# AWS's SDK and S3's file system in Hadoop, where they name no address.
_BY_STORE = re.compile(r"\(Service: \w+, Status Code: \d+|awssdk|fs\.s3a\.")
# The class of SQLSTATE for values that an expression can't compute with. Spark 3.5 has some of them without a state.
_DATA_STATE = "22"
_DATA_EXCEPTION = re.compile(
    rf"SQLSTATE: {_DATA_STATE}|\bSpark(?:Arithmetic|DateTime|NumberFormat|ArrayIndexOutOfBounds)Exception"
)
# Spark's, for a file whose column has a type that it can't convert.
_UNCONVERTED = re.compile(
    r"[Pp]arquet column cannot be converted.*?[Cc]olumn: \[(.+?)\], [Ee]xpected: (.+?), [Ff]ound: (\w+)", re.DOTALL
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
# Exception classes and message texts of Hadoop's file systems: local, S3 and Azure.
_ACCESS_DENIED = re.compile(
    r"AccessDenied|AccessControlException|NoAuthWithAWS|CredentialInitialization|ParentNotDirectory"
    r"|Permission denied|Read-only file system|Mkdirs failed to create|No AWS Credentials|, 40[13], "
)
_TRANSIENT = re.compile(
    r"FetchFailed|ExecutorLost|BlockNotFound|SocketTimeout|SocketException|ConnectException|ConnectTimeout|UnknownHost"
    r"|ClosedChannel|NoRouteToHost|InterruptedIO|Missing an output location for shuffle|Connection reset"
    r"|sent no counts|Too many open files|Input/output error|Stale file handle|, (?:408|429|50[0234]), "
)


@contextmanager
def spark_errors(place: str) -> Iterator[None]:
    """Translate exceptions of Spark in the block into MirrorErrors; `place` names the table and the operation."""
    try:
        yield
    except SPARK_ERRORS as error:
        safe = redacted_error(error)
        meant = spark_error(safe, place)
        # Spark's own message has the value of a row.
        raise meant from (None if meant.code is ErrorCode.EXPRESSION_FAILED else safe)


def spark_error(error: Exception, place: str) -> MirrorError:  # noqa: PLR0911 each kind of error is one return
    """Return the MirrorError for an exception of Spark; `place` names the table and the operation in its message."""
    facts = spark_facts(error)
    why, text = facts.why, facts.classes_and_text
    if _DATA_EXCEPTION.search(text) or any(sql_state(name).startswith(_DATA_STATE) for name in facts.conditions):
        return EXPRESSION_FAILED(place=place, condition=min(facts.conditions, default="a data exception"))
    if facts.lacks_delta:
        return DELTA_MISSING(what=place)
    if unread := _UNCONVERTED.search(text):
        stored = f"it is stored as {unread[3]}, and its type is {unread[2]}"
        return TYPE_UNREADABLE(place=place, column=unread[1], why=stored)
    if _NO_SPACE.search(text):
        return SPARK_DISK_FULL(place=place, why=why)
    # A fault of the store that Spark reads from, not of the one that it writes to.
    what, _, written = place.partition(" into ")
    store = store_named(text)
    if (store is not None and store != store_named(written)) or (store is None and _BY_STORE.search(text)):
        fault = store_error(what.partition(",")[0], store or store_named(what), text)
        if fault is not None:
            return fault
    if facts.unfound is not None:
        return FILE_UNFOUND(place=place, why=facts.unfound)
    if _ACCESS_DENIED.search(text):
        return SPARK_DENIED(place=place, why=why)
    if _TRANSIENT.search(text):
        return SPARK_INTERRUPTED(place=place, why=why)
    return FILE_DAMAGED(place=place, why=why) if _DAMAGED.search(text) else SPARK_FAILED(place=place, why=why)
