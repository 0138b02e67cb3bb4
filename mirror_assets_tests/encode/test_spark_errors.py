"""What is read from Spark's exceptions, and what it means: messages name the file and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.encode.spark_errors import spark_error, spark_errors
from mirror_assets.errors import ErrorCode, ErrorRow, MirrorError, SettingError
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE
from mirror_assets.pipeline.errors import unexpected
from mirror_assets.source.errors import (
    FILE_DAMAGED,
    FILE_UNFOUND,
    SPARK_FAILED,
    SPARK_INTERRUPTED,
    SparkFailed,
    SparkInterrupted,
)
from mirror_assets.spark_messages import spark_facts
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import Lab

_READING = "[FAILED_READ_FILE.{}] Encountered error while reading file file:/t/a.parquet. Some advice. SQLSTATE: KD001"


def _raised(spark: SparkSession, *chain: tuple[str, str]) -> Py4JJavaError:
    """py4j's error of a chain of Java's exceptions, the outermost first."""
    cause: JavaObject | None = None
    for name, message in reversed(chain):
        made = spark._jvm
        for step in name.split("."):
            made = getattr(made, step)
        cause = made(message) if cause is None else made(message, cause)
    return Py4JJavaError("An error occurred while calling o59.load.\n", cause)


_FETCH = "org.apache.spark.SparkException"
_MEANINGS: dict[str, tuple[tuple[tuple[str, str], ...], ErrorRow[MirrorError] | ErrorCode]] = {
    "File file:/t/dv.bin does not exist": (
        (
            (_FETCH, _READING.format("FILE_NOT_EXIST")),
            ("java.io.FileNotFoundException", "File file:/t/dv.bin does not exist"),
        ),
        FILE_UNFOUND,
    ),
    "/t/b.parquet (No such file or directory)": (
        (("java.io.FileNotFoundException", "/t/b.parquet (No such file or directory)"),),
        FILE_UNFOUND,
    ),
    "NoSuchFileException: /t/c.parquet": ((("java.nio.file.NoSuchFileException", "/t/c.parquet"),), FILE_UNFOUND),
    "/t/a.parquet (Permission denied)": (
        (
            (_FETCH, _READING.format("FILE_NOT_EXIST")),
            ("java.io.FileNotFoundException", "/t/a.parquet (Permission denied)"),
        ),
        ErrorCode.STORE_DENIED,
    ),
    "AccessDeniedException: /t/d": ((("java.nio.file.AccessDeniedException", "/t/d"),), ErrorCode.STORE_DENIED),
    "No AWS Credentials provided by": (
        (("java.io.IOException", "No AWS Credentials provided by EnvironmentVariableCredentialsProvider"),),
        ErrorCode.STORE_DENIED,
    ),
    "/t/a.parquet (Is a directory)": (
        (("java.io.FileNotFoundException", "/t/a.parquet (Is a directory)"),),
        SPARK_FAILED,
    ),
    "/t/a.parquet (Too many open files)": (
        (("java.io.FileNotFoundException", "/t/a.parquet (Too many open files)"),),
        SPARK_INTERRUPTED,
    ),
    "Missing an output location for shuffle 3": (
        ((_FETCH, "Job aborted due to stage failure: Missing an output location for shuffle 3 partition 0"),),
        SPARK_INTERRUPTED,
    ),
    "Connection reset": ((("java.net.SocketException", "Connection reset"),), SPARK_INTERRUPTED),
    "No space left on device": (
        ((_FETCH, "Job aborted"), ("java.io.IOException", "/scratch/x: No space left on device")),
        ErrorCode.STORE_FULL,
    ),
    "Checksum error: file:/t/_delta_log/2.json at 0": (
        (
            ("java.io.UncheckedIOException", ""),
            ("java.io.IOException", "Checksum error: file:/t/_delta_log/2.json at 0"),
        ),
        FILE_DAMAGED,
    ),
    "CAST_INVALID_INPUT": (
        (
            (_FETCH, "[TASK_WRITE_FAILED] Task failed while writing rows to file:/t."),
            (_FETCH, "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast"),
        ),
        ErrorCode.EXPRESSION_FAILED,
    ),
    "sent no counts": (((_FETCH, "Spark sent no counts within 300 s of the query"),), SPARK_INTERRUPTED),
    "EOFException (while reading file:/t/a.parquet)": (
        ((_FETCH, _READING.format("NO_HINT")), ("java.io.EOFException", "EOFException")),
        FILE_DAMAGED,
    ),
}


@pytest.mark.parametrize("told", _MEANINGS)
def test_the_deepest_cause_is_shown_and_decides_the_error(spark: SparkSession, told: str) -> None:
    chain, meaning = _MEANINGS[told]
    error = spark_error(_raised(spark, *chain), "shop.orders, encoding")
    assert meaning in (error.row, error.code)
    assert told in str(error)
    assert str(error).startswith("shop.orders, encoding: ")
    assert "An error occurred while calling" not in str(error)


def test_without_the_jvm_the_text_is_all_there_is() -> None:
    facts = spark_facts(
        PySparkException("[PATH_NOT_FOUND] Path does not exist: s3a://b/t/x. SQLSTATE: 42K03\n\tat a.b")
    )
    assert facts.conditions == {"PATH_NOT_FOUND"}
    assert "s3a://b/t/x" in str(facts.unfound)
    assert "at a.b" not in facts.why


def test_a_cause_is_found_in_the_text_where_a_secret_was_taken_out_of_it() -> None:
    told = (
        "Job aborted\n\tat a.b\nCaused by: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value"
    )
    error = spark_error(RuntimeError(told), "shop.orders, encoding")
    assert error.code is ErrorCode.EXPRESSION_FAILED
    assert "CAST_INVALID_INPUT" in str(error)


def test_a_commit_with_a_wrong_checksum_is_named(lab: Lab) -> None:
    commit = Path(lab.uri) / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text().replace("WRITE", "WRYTE"))
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    told = r"shop.orders, reading: a file can't be read as it was written: .*Checksum error: file:[^ ]*0001\.json at 0"
    with raises_row(FILE_DAMAGED, match=told) as caught, spark_errors("shop.orders, reading"):
        lab.spark.read.format("delta").option("versionAsOf", 1).load(lab.uri).collect()
    assert str(caught.value).count("0001.json") == 1


_STAGE = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: Lost task 0.3
org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3://b/t/a.parquet. \
SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(QueryExecutionErrors.scala:940)
Caused by: java.nio.file.AccessDeniedException: s3://b/t/a.parquet: open s3://b/t/a.parquet at 0 on s3://b/t/a.parquet
\tat org.apache.hadoop.fs.s3a.S3AUtils.translateException(S3AUtils.java:1)
Caused by: software.amazon.awssdk.services.s3.model.S3Exception: Access Denied (Service: S3, Status Code: 403)
\t... 17 more"""
_DENIED = "getFileStatus on s3://b/t/_delta_log: software.amazon.awssdk.services.s3.model.S3Exception"
# The messages of S3's file system in Hadoop 3.5, as servers of this machine have caused them.
_S3A = {
    f"{_DENIED}: Forbidden (Service: S3, Status Code: 403, Request ID: null):null": (
        "the store s3://b denies access (403: t/_delta_log)"
    ),
    f"{_DENIED}: Bad Request (Service: S3, Status Code: 400, Request ID: null):null": (
        "the store s3://b refuses a request, and does not say why (400)"
    ),
    "open s3://b/t/a.parquet at 0 on s3://b/t/a.parquet: The provided token has expired. (Service: S3, Status Code: 400"
    ", Request ID: R):ExpiredToken": "the store s3://b refuses keys whose time is over (ExpiredToken)",
    "Received permanent redirect response to region [eu-central-1]. This likely indicates that the S3 region in "
    "fs.s3a.endpoint.region does not match: Moved Permanently (Service: S3, Status Code: 301, Request ID: null)": (
        "the store s3://lake has its bucket in another region than the one that was asked, eu-central-1"
    ),
    "`s3://b/t/_delta_log': getFileStatus on s3://b/t/_delta_log: The specified bucket does not exist (Service: S3, "
    "Status Code: 404)": "the store s3://b does not exist",
    "getFileStatus on s3://b/t: Unable to execute HTTP request: nohost.invalid: java.net.UnknownHostException": (
        "the store s3://b has a host whose name is not found"
    ),
    "getFileStatus on s3://b/t: Connect to 127.0.0.1:9 [/127.0.0.1] failed: Connection refused": (
        "the store s3://b gives no answer (Connection refused)"
    ),
    "getFileStatus on s3://b/t: Client execution did not complete: ApiCallTimeoutException": (
        "the store s3://b gives no answer"
    ),
    "getFileStatus on s3://b/t: PKIX path building failed: unable to find valid certification path": (
        "the store s3://b shows a certificate that no known authority has signed"
    ),
    "getFileStatus on s3://b/t: Service Unavailable (Service: S3, Status Code: 503, Request ID: null)": (
        "the store s3://b takes no more requests for now"
    ),
    _STAGE: "the store s3://b denies access (403: t/a.parquet)",
}


@pytest.mark.parametrize(("told", "cause"), _S3A.items(), ids=[cause.partition("s3://")[2] for cause in _S3A.values()])
def test_a_fault_of_the_sources_store_is_reported_with_its_cause(spark: SparkSession, told: str, cause: str) -> None:
    error = spark_error(
        _raised(spark, (_FETCH, "x"), ("java.io.IOException", told)), "shop.orders, reading s3://lake/orders"
    )
    assert error.row in (SOURCE_UNREADABLE, SOURCE_UNAVAILABLE), error
    assert error.what.startswith("shop.orders can't be read")
    assert cause in error.what


def test_a_fault_of_the_store_that_spark_writes_to_is_not_the_sources(spark: SparkSession) -> None:
    denied = "open abfss://zone@acct.dfs.core.windows.net/x: Operation failed: 403, PUT, AuthorizationFailure"
    error = spark_error(
        _raised(spark, ("java.nio.file.AccessDeniedException", denied)),
        "shop.orders, encoding versions 1 to 2 into abfss://zone@acct.dfs.core.windows.net/_scratchPad/orders",
    )
    assert (error.family, error.code) == ("setting", ErrorCode.STORE_DENIED)


def test_a_connection_of_sparks_own_is_not_the_stores(spark: SparkSession) -> None:
    refused = "Failed to connect to worker-3/10.0.0.3:7337: Connection refused"
    error = spark_error(_raised(spark, ("java.io.IOException", refused)), "shop.orders, reading s3://lake/orders")
    assert isinstance(error, SparkFailed | SparkInterrupted)


def test_an_unexpected_error_is_reported_by_its_root_cause(spark: SparkSession) -> None:
    error = unexpected("shop.orders", _raised(spark, (_FETCH, "outer"), ("java.io.IOException", "the very cause")))
    assert "the very cause" in error.what
    assert "An error occurred while calling" not in str(error)


def test_a_landing_zone_that_is_a_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "landing").touch()
    with (
        pytest.raises(SettingError, match=r"denied Spark access: .*Parent path is not a directory: file:.*landing"),
        spark_errors("shop.orders"),
    ):
        spark.range(1).write.parquet(str(tmp_path / "landing" / "parts"))
