"""A machine on which no Spark can start is refused before a JVM starts, by the name of what is wrong."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from mirror_assets.encode.errors import MACHINE_UNFIT
from mirror_assets.encode.machine import require_machine
from mirror_assets_tests.errors import raises_row

_DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"
_SETTINGS = {"spark.master": "local[2]", "spark.jars.packages": _DELTA}
_JARS = {"spark.jars": "/jars/delta-spark_4.2_2.13-4.4.0.jar"}


def _spark(folder: Path, version: str) -> dict[str, str]:
    """A folder that looks like a Spark of this version, as SPARK_HOME."""
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / f"spark-core_2.13-{version}.jar").touch()
    return {"PATH": os.environ["PATH"], "SPARK_HOME": str(folder)}


def _java(folder: Path, version: str) -> dict[str, str]:
    """A folder that looks like a Java of this version, as JAVA_HOME."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "java").touch(mode=0o755)
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return {"JAVA_HOME": str(folder)}


def _refused(match: str, environment: Mapping[str, str], settings: Mapping[str, str] = _SETTINGS) -> None:
    with raises_row(MACHINE_UNFIT, match=match):
        require_machine(settings, {"PATH": os.environ["PATH"], **environment})


def test_this_machine_is_fit() -> None:
    require_machine(_SETTINGS, {"PATH": os.environ["PATH"]})


def test_a_spark_home_without_spark_is_named(tmp_path: Path) -> None:
    for home in ("/opt/spark-of-a-profile", str(tmp_path), ""):
        _refused(f"SPARK_HOME={home} has no Spark. Next: unset it", {"SPARK_HOME": home})


def test_a_spark_of_another_version_is_refused(tmp_path: Path) -> None:
    patch = f"{pyspark.__version__.rpartition('.')[0]}.99-platform-1"
    require_machine(_SETTINGS, _spark(tmp_path / "same", patch))
    _refused(f"has Spark 3.1.2, and PySpark is {pyspark.__version__}", _spark(tmp_path / "other", "3.1.2"))


def test_a_java_that_is_missing_or_too_old_is_named(tmp_path: Path) -> None:
    require_machine(_SETTINGS, _java(tmp_path / "new", "99.0.1"))
    _refused("JAVA_HOME=/opt/none has no Java", {"JAVA_HOME": "/opt/none"})
    _refused("JAVA_HOME isn't set, and PATH has no `java`", {"PATH": str(tmp_path)})
    _refused(f"JAVA_HOME={tmp_path}/old is Java 7, and Spark", _java(tmp_path / "old", "1.7.0_80"))
    (tmp_path / "spark-env.sh").touch()  # it may set JAVA_HOME
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_CONF_DIR", str(tmp_path))
        require_machine(_SETTINGS, {"JAVA_HOME": "/opt/none"})


def test_a_user_without_a_name_is_refused_with_the_line_for_etc_passwd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 3_999_999_999)
    entry = "mirror:x:3999999999:"
    _refused(f"user id 3999999999 has no name in /etc/passwd.*append `{entry}", {"HADOOP_USER_NAME": "mirror"})


def test_folders_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    for options in ({"JAVA_TOOL_OPTIONS": "-Dx=1 -Djava.io.tmpdir=/no/where"}, {}):
        named = (
            {**_SETTINGS, "spark.driver.extraJavaOptions": "-Djava.io.tmpdir=/no/where"} if not options else _SETTINGS
        )
        _refused("/no/where, the JVM's folder for temporary files, can't be written", options, named)
    (tmp_path / "file").touch()
    _refused(f"{tmp_path}/file/x can't be written", {"SPARK_LOCAL_DIRS": f"{tmp_path}/file/x"})
    _refused(f"{tmp_path}/file/x can't be written", {}, {**_SETTINGS, "spark.local.dir": f"{tmp_path}/file/x"})
    require_machine(_SETTINGS, {"PATH": os.environ["PATH"], "SPARK_LOCAL_DIRS": f"{tmp_path}/file/x,{tmp_path}/new/y"})


def test_a_folder_from_which_no_library_loads_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = os.statvfs(tmp_path)
    noexec = os.statvfs_result([*ordinary[:8], ordinary.f_flag | os.ST_NOEXEC, ordinary.f_namemax])
    monkeypatch.setattr(os, "statvfs", lambda _: noexec)
    _refused(
        f"{tmp_path}, from which Java loads libraries, is mounted noexec",
        {"_JAVA_OPTIONS": f"-Djava.io.tmpdir={tmp_path}"},
    )


@pytest.mark.parametrize(
    ("arguments", "settings", "problem"),
    [
        ("", _SETTINGS, "doesn't end with `pyspark-shell`"),
        ("--master local[2]", _SETTINGS, "doesn't end with `pyspark-shell`"),
        ("--name 'one pyspark-shell", _SETTINGS, "has a quote that isn't closed"),
        ("--remote sc://host pyspark-shell", _SETTINGS, "has --remote, with which spark-submit starts no shell"),
        ("--version pyspark-shell", _SETTINGS, "has --version"),
        ("--deploy-mode cluster pyspark-shell", _SETTINGS, "asks for another deploy mode"),
        ("--conf spark.submit.deployMode=cluster pyspark-shell", _SETTINGS, "asks for another deploy mode"),
        (
            "--packages io.delta:delta-spark_2.12:3.2.0 pyspark-shell",
            _SETTINGS,
            "has io.delta:delta-spark_2.12:3.2.0 as",
        ),
        (
            f"--packages {_DELTA},io.delta:delta-core_2.12:2.4.0 pyspark-shell",
            _SETTINGS,
            "has io.delta:delta-core_2.12",
        ),
        ("--packages=a:b:1 pyspark-shell", _SETTINGS, f"has a:b:1 as spark.jars.packages, and Spark needs {_DELTA}"),
        ("-c spark.jars.packages=a:b:1 pyspark-shell", _SETTINGS, "has a:b:1 as spark.jars.packages"),
        ("--jars /old/delta-core_2.12-2.4.0.jar pyspark-shell", _SETTINGS, "has /old/delta-core_2.12-2.4.0.jar as"),
        ("--jars mine.jar pyspark-shell", _JARS, "has mine.jar as spark.jars, and Spark needs /jars/delta"),
    ],
)
def test_submit_args_with_which_no_session_starts_are_refused(
    arguments: str, settings: Mapping[str, str], problem: str
) -> None:
    with raises_row(MACHINE_UNFIT) as refused:
        require_machine(settings, {"PATH": os.environ["PATH"], "PYSPARK_SUBMIT_ARGS": arguments})
    assert f"PYSPARK_SUBMIT_ARGS {problem}" in refused.value.what
    assert refused.value.next_step.startswith("unset PYSPARK_SUBMIT_ARGS")


@pytest.mark.parametrize(
    "arguments",
    [
        "pyspark-shell",
        "--master local[2] --verbose --name 'my shell' pyspark-shell",
        f"--packages {_DELTA},a:b:1 pyspark-shell",
        "--jars mine.jar --conf spark.x=delta pyspark-shell",
        "--deploy-mode client pyspark-shell",
    ],
)
def test_harmless_submit_args_are_accepted(arguments: str) -> None:
    require_machine(_SETTINGS, {"PATH": os.environ["PATH"], "PYSPARK_SUBMIT_ARGS": arguments})
