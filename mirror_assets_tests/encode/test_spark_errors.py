"""What is read from Spark's exceptions, and what it means: messages name the file and the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mirror_assets.encode.spark_errors import SparkOutOfSpace, SparkRefused, spark_error, spark_errors, spark_facts
from mirror_assets.errors import MirrorError
from mirror_assets.source.losses import FileUnfound, SparkFailed, SparkInterrupted
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
_MEANINGS: dict[str, tuple[tuple[tuple[str, str], ...], type[MirrorError]]] = {
    "File file:/t/dv.bin does not exist": (
        (
            (_FETCH, _READING.format("FILE_NOT_EXIST")),
            ("java.io.FileNotFoundException", "File file:/t/dv.bin does not exist"),
        ),
        FileUnfound,
    ),
    "/t/b.parquet (No such file or directory)": (
        (("java.io.FileNotFoundException", "/t/b.parquet (No such file or directory)"),),
        FileUnfound,
    ),
    "NoSuchFileException: /t/c.parquet": ((("java.nio.file.NoSuchFileException", "/t/c.parquet"),), FileUnfound),
    "/t/a.parquet (Permission denied)": (
        (
            (_FETCH, _READING.format("FILE_NOT_EXIST")),
            ("java.io.FileNotFoundException", "/t/a.parquet (Permission denied)"),
        ),
        SparkRefused,
    ),
    "AccessDeniedException: /t/d": ((("java.nio.file.AccessDeniedException", "/t/d"),), SparkRefused),
    "No AWS Credentials provided by": (
        (("java.io.IOException", "No AWS Credentials provided by EnvironmentVariableCredentialsProvider"),),
        SparkRefused,
    ),
    "/t/a.parquet (Is a directory)": (
        (("java.io.FileNotFoundException", "/t/a.parquet (Is a directory)"),),
        SparkFailed,
    ),
    "/t/a.parquet (Too many open files)": (
        (("java.io.FileNotFoundException", "/t/a.parquet (Too many open files)"),),
        SparkInterrupted,
    ),
    "Missing an output location for shuffle 3": (
        ((_FETCH, "Job aborted due to stage failure: Missing an output location for shuffle 3 partition 0"),),
        SparkInterrupted,
    ),
    "Connection reset": ((("java.net.SocketException", "Connection reset"),), SparkInterrupted),
    "No space left on device": (
        ((_FETCH, "Job aborted"), ("java.io.IOException", "/scratch/x: No space left on device")),
        SparkOutOfSpace,
    ),
    "Checksum error: file:/t/_delta_log/2.json at 0": (
        (
            ("java.io.UncheckedIOException", ""),
            ("java.io.IOException", "Checksum error: file:/t/_delta_log/2.json at 0"),
        ),
        SparkFailed,
    ),
    "EOFException (while reading file:/t/a.parquet)": (
        ((_FETCH, _READING.format("NO_HINT")), ("java.io.EOFException", "EOFException")),
        SparkFailed,
    ),
}


@pytest.mark.parametrize("told", _MEANINGS)
def test_the_deepest_cause_is_told_and_decides(spark: SparkSession, told: str) -> None:
    chain, meaning = _MEANINGS[told]
    error = spark_error(_raised(spark, *chain), "shop.orders, encoding")
    assert type(error) is meaning
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


def test_a_commit_with_a_wrong_checksum_is_named(lab: Lab) -> None:
    commit = Path(lab.uri) / "_delta_log" / f"{1:020d}.json"
    commit.write_text(commit.read_text().replace("WRITE", "WRYTE"))
    lab.spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
    told = r"shop.orders, reading: Spark failed: .*Checksum error: file:.*0001\.json"
    with pytest.raises(SparkFailed, match=told), spark_errors("shop.orders, reading"):
        lab.spark.read.format("delta").option("versionAsOf", 1).load(lab.uri).collect()


def test_a_landing_zone_that_is_a_file_is_named(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "landing").touch()
    with (
        pytest.raises(SparkRefused, match=r"Parent path is not a directory: file:.*landing"),
        spark_errors("shop.orders"),
    ):
        spark.range(1).write.parquet(str(tmp_path / "landing" / "parts"))
