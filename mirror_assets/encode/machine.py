"""Checks what this machine gives Spark's JVM, before one starts: variables, Java, the user and folders.

PySpark, Spark's scripts and Hadoop name none of these when they fail.
"""

from __future__ import annotations

import os
import pwd
import re
import shlex
import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from pyspark import __version__

from mirror_assets.encode.errors import MACHINE_UNFIT
from mirror_assets.encode.spark_start import PACKAGES, conf_folder
from mirror_assets.encode.spark_version import require_spark_home
from mirror_assets.errors import SettingError

_SUBMIT_ARGS, _SHELL = "PYSPARK_SUBMIT_ARGS", "pyspark-shell"
_NO_SHELL = ("--help", "-h", "--version", "--kill", "--status", "--remote")
_AS_SETTINGS = {"--packages": PACKAGES, "--jars": "spark.jars", "--deploy-mode": "spark.submit.deployMode"}
_JAR_LISTS, _DELTA = (PACKAGES, "spark.jars"), re.compile("delta-(?:core|spark|storage)")
_OLDEST_JAVA = 17 if int(__version__.partition(".")[0]) > 3 else 8
_JAVA_VERSION = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)', re.MULTILINE)
_OPTIONS, _JAVA_FOLDER = "spark.driver.extraJavaOptions", re.compile(r"-Djava\.io\.tmpdir=(\S+)")
_JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def require_machine(settings: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> None:
    """Raise MACHINE_UNFIT if a JVM with these settings can't start or work here. Starts no process."""
    require_spark_home(environment)
    _require_user()
    if not (conf_folder() / "spark-env.sh").exists():  # which may set JAVA_HOME
        _require_java(environment)
    _require_folders(settings, environment)
    problem = _submit_args_problem(settings, environment.get(_SUBMIT_ARGS, _SHELL))
    if problem is not None:
        step = f"unset {_SUBMIT_ARGS}, and name in `spark.settings` of mirror.yaml what it has to set"
        raise _unfit(f"{_SUBMIT_ARGS} {problem}", step)


def _unfit(why: str, next_step: str) -> SettingError:
    return MACHINE_UNFIT(why=why, next_step=f"{next_step}; then run again.")


def _require_user() -> None:
    """Raise MACHINE_UNFIT for a user id without a name: Hadoop can't sign in, whatever HADOOP_USER_NAME is."""
    user = os.getuid()
    try:
        pwd.getpwuid(user)
    except KeyError:
        entry = f"mirror:x:{user}:{os.getgid()}::/tmp:/sbin/nologin"
        step = f"run as a user of the image (`runAsUser`, `docker run --user`), or append `{entry}` to /etc/passwd"
        raise _unfit(f"user id {user} has no name in /etc/passwd, and Hadoop needs one", step) from None


def _require_java(environment: Mapping[str, str]) -> None:
    """Raise MACHINE_UNFIT without a Java, and for one that is too old by the file `release` of its folder."""
    home, wanted = environment.get("JAVA_HOME"), f"Java {_OLDEST_JAVA} or newer"
    found = shutil.which(f"{home}/bin/java" if home else "java", path=environment.get("PATH"))
    place = f"JAVA_HOME={home}" if home else "`java` of PATH"
    step = f"install {wanted}, and set JAVA_HOME to its folder{' or unset it' if home else ''}"
    if found is None:
        raise _unfit(f"{place} has no Java" if home else "JAVA_HOME isn't set, and PATH has no `java`", step)
    for folder in Path(found).resolve().parents[1:3]:
        release = folder / "release"
        version = _JAVA_VERSION.search(release.read_text(errors="replace")) if release.is_file() else None
        if version is not None and int(version[1]) < _OLDEST_JAVA:
            raise _unfit(f"{place} is Java {version[1]}, and Spark {__version__} needs {wanted}", step)


def _require_folders(settings: Mapping[str, str], environment: Mapping[str, str]) -> None:
    """Raise MACHINE_UNFIT if the JVM can't write into its folders of temporary files, or load libraries from there."""
    options = " ".join((settings.get(_OPTIONS, ""), *(environment.get(name, "") for name in _JAVA_VARIABLES)))
    named = _JAVA_FOLDER.search(options)
    folder = Path(named[1] if named else "/tmp")  # noqa: S108 the JVM's default, whatever TMPDIR is
    step = f"set -Djava.io.tmpdir to another folder, in {_OPTIONS} of `spark.settings`"
    if not can_write(folder):
        raise _unfit(f"{folder}, the JVM's folder for temporary files, can't be written", step)
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise _unfit(f"{folder}, from which Java loads libraries, is mounted noexec", step)
    local = environment.get("SPARK_LOCAL_DIRS") or settings.get("spark.local.dir") or str(folder)
    folders = [Path(one.strip()).absolute() for one in local.split(",")]  # Spark makes those that don't exist
    if not any(can_write(next(path for path in (one, *one.parents) if path.exists())) for one in folders):
        raise _unfit(f"{local} can't be written", "set SPARK_LOCAL_DIRS, or else spark.local.dir, to another folder")


def can_write(folder: Path) -> bool:
    """Return whether this process can make files in the folder; false if it doesn't exist."""
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _submit_args_problem(settings: Mapping[str, str], text: str) -> str | None:
    """Return why spark-submit, with these arguments behind the settings, starts no session of them; None if it does."""
    try:
        words = shlex.split(text)
    except ValueError:
        return "has a quote that isn't closed"
    if _SHELL not in words:
        return f"doesn't end with `{_SHELL}`"
    theirs = dict[str, str]()
    for word, following in pairwise(words):
        name, has_value, value = word.partition("=")
        if name in _NO_SHELL:
            return f"has {name}, with which spark-submit starts no shell"
        value = value if has_value else following
        if name in ("--conf", "-c"):
            name, _, value = value.partition("=")
        theirs[_AS_SETTINGS.get(name, name)] = value
    if theirs.get("spark.submit.deployMode", "client") != "client":
        return "asks for another deploy mode than client, the only one of PySpark"
    for name in _JAR_LISTS:
        ours, found = ({item.strip() for item in one.get(name, "").split(",")} - {""} for one in (settings, theirs))
        if name in theirs and (ours - found or any(map(_DELTA.search, found - ours))):
            needed = f", and Spark needs {', '.join(sorted(ours))}" if ours else ""
            return f"has {', '.join(sorted(found))} as {name}{needed}"
    return None
