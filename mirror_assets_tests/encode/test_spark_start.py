"""A local Spark uses known JARs and a class archive, and no file that other users could have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mirror_assets.encode.spark_start import QuickStart, for_brief_work

_PLAIN = {"spark.master": "local[2]", "spark.jars.packages": "a:b:1"}
_OPTIONS = "spark.driver.extraJavaOptions"
_PATH = "spark.driver.extraClassPath"
_WRITE, _USE = "-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile="


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


def test_without_a_known_list_spark_resolves_the_packages() -> None:
    assert QuickStart.of(_PLAIN).started() == _PLAIN


def test_known_jars_follow_sparks_own_on_the_class_path(jar: Path) -> None:
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


def _options(settings: dict[str, str] = _PLAIN) -> str:
    """The JVM's options of a start with these settings."""
    return QuickStart.of(settings).started().get(_OPTIONS, "")


@pytest.mark.usefixtures("jar")
def test_the_archive_follows_the_users_options() -> None:
    assert _options({**_PLAIN, _OPTIONS: "-Dmine=1"}).startswith(
        f"-Dmine=1 -Xlog:cds=off -Xlog:cds+dynamic=off {_WRITE}"
    )


@pytest.mark.usefixtures("jar")
@pytest.mark.parametrize("own", ["-Xshare:off", "-XX:SharedArchiveFile=mine.jsa", "-javaagent:a.jar"])
def test_no_archive_beside_the_users_own_or_an_agent(own: str) -> None:
    assert _options({**_PLAIN, _OPTIONS: own}) == own


@pytest.mark.usefixtures("jar")
def test_no_archive_with_a_class_path_that_may_have_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _options({**_PLAIN, _PATH: "/mine"}) == ""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert _options() == ""


@pytest.mark.usefixtures("jar")
def test_an_archive_is_used_when_it_is_complete() -> None:
    written = _options()
    archive = Path(written.partition(_WRITE)[2])
    archive.write_bytes(bytes(100))  # the JVM was killed before it wrote the header
    assert _options() == written
    archive.write_bytes(b"header")
    assert _options() == written.replace(_WRITE, _USE)


def test_changed_jars_and_another_java_have_another_archive(
    jar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _options()
    jar.write_text("changed", encoding="utf-8")
    changed = _options()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert _options() == ""  # no Java is there
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "modules").touch()
    assert len({first, changed, _options()}) == 3


@pytest.mark.usefixtures("jar")
def test_an_archive_that_was_not_used_for_a_month_is_deleted_with_the_next_one(cache: Path) -> None:
    old, new = cache / "old.jsa", cache / "new.jsa"
    for path in (old, new):
        path.touch()
    os.utime(old, (time.time() - 31 * 24 * 3600,) * 2)
    _options()
    assert [path for path in (old, new) if path.exists()] == [new]


def test_a_brief_spark_optimises_less_unless_the_user_says_otherwise() -> None:
    brief = for_brief_work({**_PLAIN, _OPTIONS: "-Dmine=1"})[_OPTIONS]
    assert brief == "-Dmine=1 -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
    for other in ({"spark.master": "yarn"}, {**_PLAIN, _OPTIONS: "-XX:-TieredCompilation"}):
        assert for_brief_work(other) == other


_LOCALE = """\
import os
from collections import deque
from mirror_assets.encode import spark_start
def started(*_):
    print(os.environ.get("LC_ALL"), flush=True)
    raise SystemExit
spark_start.launch_gateway = started
spark_start.start_jvm({}, deque())
"""


@pytest.mark.parametrize(
    ("variables", "seen"),
    [
        ({"LC_ALL": "POSIX"}, "C.UTF-8"),
        ({"LC_ALL": "xx_XX.UTF-8"}, "C.UTF-8"),  # no such locale
        ({"LC_ALL": "C.UTF-8"}, "C.UTF-8"),
        ({"LANG": "C.UTF-8"}, "None"),
    ],
    ids=str,
)
def test_the_jvm_names_files_in_utf_8_as_python_does(variables: dict[str, str], seen: str) -> None:
    """Its own option `sun.jnu.encoding` has no effect; with POSIX, it found no file whose name is not ASCII."""
    kept = {name: value for name, value in os.environ.items() if name != "LANG" and not name.startswith("LC_")}
    command = [sys.executable, "-c", _LOCALE]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, env={**kept, **variables})
    assert ended.stdout.strip() == seen


_LOAD = """\
from mirror_assets.encode.session import open_session, spark_settings
session = open_session(spark_settings({"spark.master": "local[1]", "spark.driver.extraJavaOptions": "OPTIONS"}))
session.range(1).write.format("delta").save("FOLDER")
jvm = session.sparkContext._gateway.proc
session.stop()
jvm.stdin.close()
jvm.wait()
"""


def _load(options: str, folder: Path) -> str:
    code = _LOAD.replace("OPTIONS", options).replace("FOLDER", str(folder))
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stderr


@pytest.mark.soak
def test_the_jvm_makes_an_archive_and_uses_it(cache: Path, tmp_path: Path) -> None:
    _load("", tmp_path / "a")  # resolves the packages
    _load("-Dx=1", tmp_path / "b")  # the JVM writes the archive when it exits
    assert {path.suffix for path in cache.iterdir()} == {".json", ".jsa"}
    loaded = _load("-Xlog:class+load:stderr", tmp_path / "c")
    assert any("sql.delta.DeltaLog " in line and "shared objects file (top)" in line for line in loaded.splitlines())


_DOWNLOAD = """\
import sys
import time
from pathlib import Path
from mirror_assets.encode.session import fill_jar_folder
from mirror_assets.encode.session import spark_settings
print(*(jar.name for jar in fill_jar_folder(Path(sys.argv[1]), spark_settings({"spark.master": "local[1]"}))))
"""


@pytest.mark.long(60)
def test_the_jars_of_the_packages_are_copied_into_a_folder(tmp_path: Path) -> None:
    """In a process of its own: the session of this one, if it has any, is the one of the fixture `spark`."""
    folder = tmp_path / "jars"
    done = subprocess.run([sys.executable, "-c", _DOWNLOAD, folder], check=True, capture_output=True, text=True)
    jars = done.stdout.split()
    assert any("delta-spark" in jar for jar in jars)
    assert set(jars) == {path.name for path in folder.iterdir()}
