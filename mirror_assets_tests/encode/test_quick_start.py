"""A local Spark names the JARs that it knows, and never trusts what others could have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mirror_assets.encode.class_archive import encode_small_slices, make_archive
from mirror_assets.encode.quick_start import QuickStart, for_brief_work
from mirror_assets.encode.session import spark_settings

_PLAIN = {"spark.master": "local[2]", "spark.jars.packages": "a:b:1"}
_OPTIONS = "spark.driver.extraJavaOptions"
_PATH = "spark.driver.extraClassPath"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache folder, empty, with the folder of what is known of Spark's start in it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mirror_assets" / "spark"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """The one JAR of the plain settings' packages, whose list is known."""
    made = tmp_path / "b.jar"
    made.touch()
    _know(_PLAIN, made)
    return made


def _know(settings: dict[str, str], *jars: Path) -> None:
    quick = QuickStart.of(settings)
    assert quick.folder is not None
    quick._list(quick.folder).write_text(json.dumps([str(jar) for jar in jars]), encoding="utf-8")


def test_nothing_is_known_at_first() -> None:
    quick = QuickStart.of(_PLAIN)
    assert (quick.started(), quick.archive) == (_PLAIN, None)


def test_known_jars_are_named_behind_sparks_own(jar: Path) -> None:
    started = QuickStart.of({**_PLAIN, _PATH: "/mine"}).started()
    path = started[_PATH].split(os.pathsep)
    assert (path[0], path[-2].endswith("/jars/*"), path[-1]) == ("/mine", True, str(jar))
    assert started["spark.jars.packages"] == ""


@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize(
    "other",
    [
        {"spark.master": "yarn"},
        {"spark.jars": "mine.jar"},
        {"spark.jars.repositories": "elsewhere"},
        {"spark.jars.ivySettings": "mine.xml"},
        {"spark.jars.packages": ""},
        {"spark.jars.packages": "a:b:1-SNAPSHOT"},
        {"spark.jars.packages": "a:b:[1,2)"},
    ],
)
def test_what_may_mean_other_jars_is_resolved_by_spark(other: dict[str, str]) -> None:
    settings = {**_PLAIN, **other}
    assert QuickStart.of(settings).started() == settings


@pytest.mark.usefixtures("jar")
def test_a_machine_that_sets_spark_up_itself_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "spark-defaults.conf").touch()
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert (QuickStart.of(_PLAIN).started(), for_brief_work(_PLAIN)) == (_PLAIN, _PLAIN)


def test_a_jar_that_is_gone_is_resolved_by_spark(jar: Path) -> None:
    jar.unlink()
    assert QuickStart.of(_PLAIN).started() == _PLAIN


@pytest.mark.parametrize("text", ["", "{", "not JSON"])
def test_a_damaged_list_is_resolved_by_spark(text: str) -> None:
    _know(_PLAIN)
    quick = QuickStart.of(_PLAIN)
    assert quick.folder is not None
    quick._list(quick.folder).write_text(text, encoding="utf-8")
    assert quick.started() == _PLAIN


@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_to_is_not_used(cache: Path, mode: int) -> None:
    cache.chmod(mode)
    assert QuickStart.of(_PLAIN).started() == _PLAIN


@pytest.mark.usefixtures("jar")
def test_a_link_to_a_folder_is_not_used(cache: Path) -> None:
    cache.rename(cache.with_name("elsewhere"))
    cache.symlink_to(cache.with_name("elsewhere"))
    assert QuickStart.of(_PLAIN).started() == _PLAIN


def test_a_home_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert QuickStart.of(_PLAIN).started() == _PLAIN


@pytest.mark.usefixtures("jar")
def test_an_archive_is_mapped_behind_the_users_options() -> None:
    quick = QuickStart.of({**_PLAIN, _OPTIONS: "-Dmine=1"})
    assert quick.archive is not None
    assert quick.started()[_OPTIONS] == "-Dmine=1"
    quick.archive.touch()
    mine, mapped, *_ = quick.started()[_OPTIONS].split(" ")
    assert (mine, mapped) == ("-Dmine=1", f"-XX:SharedArchiveFile={quick.archive}")


@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize("own", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-javaagent:a.jar"])
def test_no_archive_beside_the_users_own_or_an_agent(own: str) -> None:
    assert QuickStart.of({**_PLAIN, _OPTIONS: own}).archive is None


@pytest.mark.usefixtures("jar")
def test_another_java_has_another_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = QuickStart.of(_PLAIN).archive
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert QuickStart.of(_PLAIN).archive not in (None, before)


def test_a_brief_spark_optimises_less_unless_the_user_says_otherwise() -> None:
    assert for_brief_work({**_PLAIN, _OPTIONS: "-Dmine=1"})[_OPTIONS] == "-Dmine=1 -XX:TieredStopAtLevel=1"
    for other in ({"spark.master": "yarn"}, {**_PLAIN, _OPTIONS: "-XX:-TieredCompilation"}):
        assert for_brief_work(other) == other


def test_what_the_archive_is_made_of_runs(spark: SparkSession, tmp_path: Path) -> None:
    encode_small_slices(spark, str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"table", "snapshot", "changes-True", "changes-False"}


_LOAD = """\
from mirror_assets.encode.session import open_session, spark_settings
logged = {"spark.master": "local[1]", "spark.driver.extraJavaOptions": "-Xlog:class+load:stderr"}
open_session(spark_settings(logged))._jvm.java.lang.Class.forName("org.apache.spark.sql.delta.DeltaLog")
"""


@pytest.mark.long(60)
def test_an_archive_is_made_and_fits(cache: Path) -> None:
    settings = spark_settings({"spark.master": "local[1]"})
    made = make_archive(settings)
    assert made is not None
    assert {path.suffix for path in cache.iterdir()} == {".json", ".jsa"}
    told = subprocess.run([sys.executable, "-c", _LOAD], check=True, capture_output=True, text=True).stderr
    assert any("sql.delta.DeltaLog " in line and "shared objects file (top)" in line for line in told.splitlines())
