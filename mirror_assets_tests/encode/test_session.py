"""Sessions apart on one context, and the settings that they start with."""

from __future__ import annotations

import pwd
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from weakref import WeakSet

import pytest
from py4j.finalizer import ThreadSafeFinalizer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from mirror_assets.byte_settings import PINNED, ContextSetting
from mirror_assets.encode import session
from mirror_assets.encode.errors import MAVEN_UNREACHABLE, SPARK_NOT_STARTED
from mirror_assets.encode.jvm import Jvm
from mirror_assets.encode.session import open_session, own_session, spark_settings
from mirror_assets.encode.spark_version import delta_package
from mirror_assets.errors import ErrorRow, SettingError
from mirror_assets.process import search_rarely
from mirror_assets.spark_api import settings_of
from mirror_assets_tests.errors import raises_row
from mirror_assets_tests.lab import Lab
from mirror_assets_tests.spark_4 import IS_SPARK_4

_PARTITIONS = "spark.sql.shuffle.partitions"
_OURS = "io.delta.sql.DeltaSparkSessionExtension"


def test_a_session_has_its_settings_and_leaves_others_alone(spark: SparkSession) -> None:
    before = spark.conf.get(_PARTITIONS)
    one, other = open_session({_PARTITIONS: "7"}), open_session({_PARTITIONS: "9"})
    assert [session.conf.get(_PARTITIONS) for session in (one, other, spark)] == ["7", "9", before]
    assert one.sparkContext is spark.sparkContext


def _tasks(session: SparkSession, rows: int) -> int:
    """How many tasks read a shuffle of these rows."""
    # Rows that are in ranges of their key already need no shuffle.
    keys = session.range(0, rows, 1, 2).selectExpr("hash(id) AS key")
    return int(keys.groupBy("key").count().rdd.getNumPartitions())


@pytest.mark.usefixtures("spark")
def test_a_shuffle_has_as_many_tasks_as_its_rows_need() -> None:
    session = open_session({"spark.sql.adaptive.coalescePartitions.parallelismFirst": "false"})
    assert _tasks(session, 51) == 1
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "10KB")  # as if there were more rows
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "10KB")
    few, many = _tasks(session, 10_000), _tasks(session, 40_000)
    assert 2 < few < many < 1000
    assert _tasks(open_session({"spark.sql.adaptive.enabled": "false", _PARTITIONS: "3"}), 51) == 3


@pytest.mark.usefixtures("spark")
def test_a_shuffle_with_a_number_of_partitions_keeps_it_and_their_order() -> None:
    rows = open_session({}).range(0, 100, 1, 2).repartition(7, "id").withColumn("at", F.spark_partition_id())
    assert rows.rdd.getNumPartitions() == 7
    assert rows.where("at <> pmod(hash(id), 7)").isEmpty()


def test_a_session_that_is_handed_in_has_its_own_number_of_partitions_or_ours(spark: SparkSession) -> None:
    handed = spark.newSession()
    handed.conf.set(_PARTITIONS, "9")
    assert own_session(handed).conf.get(_PARTITIONS) == "9"


@pytest.mark.usefixtures("spark")
def test_an_owner_gets_its_session_again_with_its_settings_restored() -> None:
    one = open_session({_PARTITIONS: "7"}, owner="a table")
    for name, value in {_PARTITIONS: "8", "spark.sql.caseSensitive": "true"}.items():
        one.conf.set(name, value)
    again, other = open_session({_PARTITIONS: "7"}, owner="a table"), open_session({}, owner="another")
    assert Jvm(again).session.equals(Jvm(one).session)
    assert not Jvm(again).session.equals(Jvm(other).session)
    assert again.conf.get(_PARTITIONS) == "7"
    assert {name: one.conf.get(name) for name in PINNED} == PINNED


def test_the_driver_keeps_no_frames_of_slices_that_have_landed(lab: Lab) -> None:
    search_rarely()  # as a command or definitions that are loaded again in the process
    kept = list[int]()
    for number in range(8):
        lab.sql(f"INSERT INTO {{t}} VALUES ({100 + number}, 'new', 1)")
        lab.mirror()
        kept.append(len(ThreadSafeFinalizer.finalizers))
    # A slice has a hundred of them.
    assert kept[-1] < kept[1] + 200


def test_a_session_that_is_handed_in_stays_unchanged_and_ours_has_the_settings_that_decide_bytes(
    spark: SparkSession,
) -> None:
    handed = spark.newSession()
    hostile = {
        "spark.sql.ansi.enabled": "false",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "fs.defaultFS": "hdfs://x",
    }
    for name, value in {**hostile, "fs.their.store": "reached"}.items():
        handed.conf.set(name, value)
    before = settings_of(handed)
    ours = own_session(handed, "a handed one")
    assert settings_of(handed) == before
    assert {name: ours.conf.get(name) for name in PINNED} == PINNED
    hadoop = Jvm(ours).session.sessionState().newHadoopConf()
    assert (hadoop.get("fs.defaultFS"), hadoop.get("fs.their.store")) == ("file:///", "reached")
    assert Jvm(own_session(handed, "a handed one")).session.equals(Jvm(ours).session)


def test_a_lost_file_is_an_error_where_the_project_ignores_missing_files(spark: SparkSession, tmp_path: Path) -> None:
    handed, folder = spark.newSession(), tmp_path / "t"
    handed.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    spark.range(4).coalesce(1).write.format("delta").save(str(folder))
    for file in folder.glob("*.parquet"):
        file.unlink()
    assert handed.read.format("delta").load(str(folder)).collect() == []
    with pytest.raises(
        (PySparkException, Py4JJavaError), match="FILE_NOT_EXIST" if IS_SPARK_4 else "SparkFileNotFound"
    ):
        own_session(handed).read.format("delta").load(str(folder)).collect()


def test_a_setting_that_decides_bytes_is_refused_with_another_value() -> None:
    with pytest.raises(SettingError, match=r"spark\.sql\.ansi\.enabled: it decides which rows land"):
        open_session({"spark.sql.ansi.enabled": "false"})


@pytest.mark.usefixtures("spark")
def test_a_context_with_a_setting_that_no_session_can_change_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_CHECKED", WeakSet())
    planted = ContextSetting("spark.app.name", "another", "it is planted")
    monkeypatch.setattr(session, "CONTEXT_SETTINGS", (planted,))
    with pytest.raises(SettingError, match=r"the Spark context has spark\.app\.name=mirror-assets: it is planted"):
        open_session({})


def test_secrets_reach_hadoop_through_the_session_alone(spark: SparkSession) -> None:
    session = open_session({}, {"spark.hadoop.fs.some.key": "planted"})
    assert Jvm(session).session.sessionState().newHadoopConf().get("fs.some.key") == "planted"
    assert Jvm(spark).session.sessionState().newHadoopConf().get("fs.some.key") is None


def test_a_small_query_does_not_wait_for_a_large_one(spark: SparkSession) -> None:
    tasks, context = 200, spark.sparkContext

    def large() -> None:
        context.setJobGroup("large", "many tasks")
        spark.range(0, tasks * 500_000, 1, tasks).selectExpr("sum(hash(id) % 7)").collect()

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(large)
        try:
            while not (jobs := context.statusTracker().getJobIdsForGroup("large")):
                time.sleep(0.01)
            assert spark.range(10).selectExpr("sum(id)").collect()[0][0] == 45
            job = context.statusTracker().getJobInfo(jobs[0])
            stages = [context.statusTracker().getStageInfo(stage) for stage in (job.stageIds if job else ())]
            assert not running.done()
            assert max(stage.numCompletedTasks for stage in stages if stage) < tasks / 2
        finally:
            context.cancelJobGroup("large")
            running.exception()


@pytest.mark.usefixtures("spark")
def test_a_setting_that_spark_refuses_is_named() -> None:
    with raises_row(SPARK_NOT_STARTED, match=r"spark\.sql\.shuffle\.partitions"):
        open_session({_PARTITIONS: "many"})


_REFUSED = """\
from mirror_assets.encode.session import open_session, spark_settings
from mirror_assets.errors import ErrorRow, SettingError
try:
    open_session(spark_settings({{"spark.master": "local[1]", {setting!r}: {value!r}}}))
except SettingError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("spark.driver.memory", "3x", "Invalid maximum heap size: -Xmx3x"),
        ("spark.jars.packages", "no.such:thing:1.0", "unresolved dependency: no.such#thing;1.0: not found"),
    ],
)
def test_the_message_ends_with_what_the_jvm_printed(setting: str, value: str, told: str) -> None:
    command = [sys.executable, "-c", _REFUSED.format(setting=setting, value=value)]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "Spark did not start" in ended.stdout
    assert told in ended.stdout.partition("The JVM's last lines:")[2]
    assert told in ended.stderr, "what the JVM prints still reaches the terminal"


_OFFLINE = {
    "spark.master": "local[1]",
    "spark.jars.packages": "a:b:1",
    "spark.driver.extraJavaOptions": "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1",
}
_POM = "https://maven.example/a/b/1/b-1.pom"
_NOT_RESOLVED = 'Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]'


@pytest.mark.parametrize(
    ("printed", "row"),
    [
        (f"Host maven.example not found. url={_POM}", MAVEN_UNREACHABLE),
        (
            f"Server access error at url {_POM} (java.net.ConnectException: Connection refused)",
            MAVEN_UNREACHABLE,
        ),
        ("Host spark-packages.example not found. url=https://spark-packages.example/a", SPARK_NOT_STARTED),
    ],
)
def test_a_repository_that_can_not_be_reached_differs_from_one_that_lacks_the_package(
    monkeypatch: pytest.MonkeyPatch, printed: str, row: ErrorRow[SettingError]
) -> None:
    def start_jvm(_: Mapping[str, str], lines: deque[str]) -> None:
        lines.extend([printed, *("==== central: tried",) * 50, _NOT_RESOLVED])
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(session, "start_jvm", start_jvm)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dx=1")
    with raises_row(row) as refused:
        session._start(_OFFLINE)
    if row is SPARK_NOT_STARTED:
        assert "in `spark.settings`, JAVA_TOOL_OPTIONS or on the machine" in refused.value.next_step
    else:
        assert "a:b:1" in refused.value.what
        assert "run `mirror-assets download-jars FOLDER` where there is a network" in refused.value.next_step


@pytest.mark.soak
def test_a_machine_without_a_network_says_how_to_get_the_jars(tmp_path: Path) -> None:
    settings = {**_OFFLINE, "spark.jars.ivy": str(tmp_path)}
    code = f"from mirror_assets.encode.session import open_session\nopen_session({settings!r})"
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "Maven can't be reached from this machine, and Spark needs JARs of a:b:1" in ended.stderr


def test_jars_are_downloaded_into_the_cache_where_the_home_folder_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = list[Mapping[str, str]]()

    def start_jvm(settings: Mapping[str, str], _: deque[str]) -> None:
        started.append(settings)
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(session, "start_jvm", start_jvm)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for home in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(pwd, "getpwuid", lambda _, home=home: SimpleNamespace(pw_dir=str(home)))
        with raises_row(SPARK_NOT_STARTED):
            session._start({**_OFFLINE, "spark.driver.extraJavaOptions": ""})
    found = [settings.get("spark.jars.ivy") for settings in started]
    assert found == [None, str(tmp_path / "mirror_assets" / "ivy")]
    assert {settings["spark.hadoop.fs.defaultFS"] for settings in started} == {"file:///"}


_LOCKED = """\
import sys, time
from mirror_assets.encode.spark_start import resolving_alone
with resolving_alone():
    print(time.monotonic(), flush=True)
    time.sleep(0.5)
    print(time.monotonic(), flush=True)
"""


def test_packages_are_resolved_by_one_process_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    started = [subprocess.Popen([sys.executable, "-c", _LOCKED], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    first, second = sorted([float(at) for at in process.communicate()[0].split()] for process in started)
    assert first[1] <= second[0]


@pytest.mark.parametrize(
    ("wanted", "packages"),
    [
        ({}, f"{delta_package()},a:b:1"),
        ({"spark.jars.packages": "c:d:2, e:f:3"}, f"{delta_package()},a:b:1,c:d:2,e:f:3"),
        ({"spark.jars.packages": f"c:d:2,{delta_package()}"}, f"{delta_package()},a:b:1,c:d:2"),
        ({"spark.jars.packages": "a:b:2"}, f"{delta_package()},a:b:2"),
        ({"spark.jars.packages": " "}, ""),
    ],
)
def test_packages_come_behind_ours(wanted: dict[str, str], packages: str) -> None:
    assert spark_settings(wanted, ["a:b:1"])["spark.jars.packages"] == packages


@pytest.mark.parametrize("other", ["io.delta:delta-spark_2.13:4.0.0", f"{delta_package()}-SNAPSHOT"])
def test_another_delta_replaces_the_one_of_delta_spark(other: str) -> None:
    assert spark_settings({"spark.jars.packages": other}, ["a:b:1"])["spark.jars.packages"] == f"a:b:1,{other}"


def test_without_deltas_jars_the_session_has_no_classes_of_delta() -> None:
    """With the name of a class that isn't there, Spark could not read Parquet files either."""
    settings = spark_settings({"spark.jars.packages": ""})
    assert not {"spark.sql.extensions", "spark.sql.catalog.spark_catalog"} & settings.keys()


@pytest.mark.parametrize(
    ("wanted", "extensions"),
    [
        ({}, _OURS),
        ({"spark.sql.extensions": "com.Mine"}, f"{_OURS},com.Mine"),
        ({"spark.sql.extensions": _OURS}, _OURS),
    ],
)
def test_extensions_come_behind_ours(wanted: dict[str, str], extensions: str) -> None:
    assert spark_settings(wanted)["spark.sql.extensions"] == extensions
