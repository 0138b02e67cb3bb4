"""Starts the JVM of a Spark session; a local one faster, by known JARs on the class path and an archive of classes.

Spark resolves `spark.jars.packages` at each start, copies the JARs, and loads and verifies each class. The user's cache
folder has the list of JARs of each list of packages, and an archive of the classes that the first JVM with these JARs
has loaded, which that JVM writes when it exits. Both can be deleted at any time. They name and contain executable code,
so a folder that other users can write to is not used.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import locale
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark import SparkConf, SparkContext, __version__
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from mirror_assets.process import user_cache

PACKAGES, EXCLUDES = "spark.jars.packages", "spark.jars.excludes"
_CLASS_PATH, _OPTIONS = "spark.driver.extraClassPath", "spark.driver.extraJavaOptions"
# Settings that change where packages come from, or how JARs are loaded.
_OWN_WAYS = (
    "spark.jars",
    "spark.jars.ivy",
    "spark.jars.ivySettings",
    "spark.jars.repositories",
    "spark.driver.userClassPathFirst",
)
# Versions whose files may change.
_MOVING = re.compile(r"SNAPSHOT|latest\.|[\[\](+]")
# The JVM uses no archive with an agent that may change classes, and only one archive.
_OWN_ARCHIVE = re.compile(r"-agent|-javaagent|-Xshare|SharedArchiveFile|ArchiveClassesAtExit")
# The JVM ignores an archive that doesn't fit, and need not say so.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_MAGIC_BYTES = 4
_UNUSED_SECONDS = 30 * 24 * 3600
_OTHERS_WRITE = 0o022
_OWN_COMPILER = re.compile("Tiered|CodeCache")
# The optimising compiler takes a quarter of the processor time of a short run. Without it, the JVM reserves only 48 MB
# for code, which the statements of five tables fill; then it fails.
_NOT_OPTIMISED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
_STANDARD_ERROR = 2
UTF_8_LOCALE = "C.UTF-8"


@dataclass(frozen=True)
class QuickStart:
    """How to start a local Spark with these settings; `folder` is None where nothing may be cached."""

    settings: Mapping[str, str]
    folder: Path | None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> QuickStart:
        """Return the quick start from the user's cache folder.

        Only a local Spark with packages of fixed versions from the default repositories has a folder, and only this
        user may be able to write to it.
        """
        packages = settings.get(PACKAGES, "")
        is_local = settings.get("spark.master", "").startswith("local")
        is_own = any(map(settings.get, _OWN_WAYS)) or _has_own_settings()
        if not is_local or not packages or _MOVING.search(packages) or is_own:
            return cls(settings, None)
        try:
            folder = user_cache() / "spark"
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
        except (OSError, RuntimeError):
            return cls(settings, None)
        is_safe = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & _OTHERS_WRITE
        return cls(settings, folder if is_safe else None)

    def started(self) -> dict[str, str]:
        """Return the settings to start with: unchanged while the JARs are unknown, or if one of them was deleted."""
        jars, options = self.jars, self.settings.get(_OPTIONS, "")
        if self.folder is None or not jars:
            return dict(self.settings)
        own = self.settings.get(_CLASS_PATH)
        # Spark's own classes come before those of packages, as when Spark resolves them.
        spark = Path(_find_spark_home(), "jars")
        path = os.pathsep.join([*([own] if own else []), str(conf_folder()), f"{spark}/*", *jars])
        # The JVM archives no classes if the class path has a folder with files.
        if not own and not conf_folder().exists() and not _OWN_ARCHIVE.search(options):
            options = f"{options} {_archive_options(self.folder, [*spark.glob('*.jar'), *map(Path, jars)])}".strip()
        return {**self.settings, PACKAGES: "", _CLASS_PATH: path, _OPTIONS: options}

    def keep_jars(self, session: SparkSession) -> None:
        """Save the list of JARs of a session that has just resolved the packages."""
        if self.folder is None or self.jars:
            return
        resolved = session.sparkContext.getConf().get("spark.jars", "") or ""
        paths = [unquote(urlsplit(jar).path) for jar in resolved.split(",") if jar]
        if not paths:
            return
        try:
            with tempfile.NamedTemporaryFile("w", dir=self.folder, delete=False, encoding="utf-8") as written:
                json.dump(paths, written)
            Path(written.name).replace(self._list(self.folder))
        except OSError:
            return  # the next start resolves them again

    @property
    def jars(self) -> tuple[str, ...]:
        """The JARs of the packages, if they are known and all exist."""
        if self.folder is None:
            return ()
        try:
            named = json.loads(self._list(self.folder).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        return tuple(named) if all(Path(jar).is_file() and os.pathsep not in jar for jar in named) else ()

    def _list(self, folder: Path) -> Path:
        return folder / f"{_digest([__version__, self.settings[PACKAGES], self.settings.get(EXCLUDES, '')])}.json"


def _archive_options(folder: Path, jars: Sequence[Path]) -> str:
    """Return the JVM's options to use the archive for this Java and these JARs; without one, to write it at exit."""
    home = os.environ.get("JAVA_HOME") or Path(shutil.which("java") or "/java").resolve().parent.parent
    try:
        # An update replaces the module file; the JVM itself never renews an archive.
        files = [(path, path.stat()) for path in (Path(home, "lib", "modules"), *sorted(jars))]
        archive = folder / f"{_digest([f'{path} {file.st_size} {file.st_mtime_ns}' for path, file in files])}.jsa"
        if archive.exists() and _has_header(archive):
            return f"{_QUIET} -XX:SharedArchiveFile={shlex.quote(str(archive))}"
        for other in folder.glob("*.jsa"):
            if time.time() - other.stat().st_atime > _UNUSED_SECONDS:
                other.unlink()
    except OSError:
        return ""
    return f"{_QUIET} -XX:ArchiveClassesAtExit={shlex.quote(str(archive))}"


def _has_header(archive: Path) -> bool:
    """Return whether the archive is complete: the JVM writes the header last, so one that was killed leaves zeros."""
    with archive.open("rb") as file:
        return any(file.read(_MAGIC_BYTES))


def for_brief_work(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a local Spark that ends after small slices: without the optimising compiler."""
    options = settings.get(_OPTIONS, "")
    is_local = settings.get("spark.master", "").startswith("local")
    if not is_local or _has_own_settings() or _OWN_COMPILER.search(options):
        return dict(settings)
    return {**settings, _OPTIONS: f"{options} {_NOT_OPTIMISED}".strip()}


def _has_own_settings() -> bool:
    """Return whether this machine configures Spark in places that our settings would override."""
    return "PYSPARK_SUBMIT_ARGS" in os.environ or (conf_folder() / "spark-defaults.conf").exists()


def conf_folder() -> Path:
    """Return the folder of Spark's configuration files; it need not exist."""
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf"))


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def start_jvm(settings: Mapping[str, str], last_lines: deque[str]) -> None:
    """Start the JVM that Spark's context in this process will use, unless there is one.

    Adds the lines that the JVM prints to standard error, without stack traces. Raises PySparkException.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001 pyspark has no public way to ask
        return
    if sys.getfilesystemencoding() == "utf-8" and locale.nl_langinfo(locale.CODESET).lower() != "utf-8":
        # Python uses UTF-8 also in the locale POSIX. The JVM encodes file names as the locale says, whatever its
        # options are, so it would not find those that aren't ASCII.
        os.environ["LC_ALL"] = UTF_8_LOCALE
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    read, write = os.pipe()

    def pass_on() -> None:
        with os.fdopen(read, "rb") as printed:
            for line in printed:
                os.write(_STANDARD_ERROR, line)
                text = line.decode(errors="replace").strip()
                if text.strip(":=-") and not text.startswith(("at ", "... ")):
                    last_lines.append(text)

    reader = threading.Thread(target=pass_on, name="jvm-output", daemon=True)
    reader.start()
    try:
        # A reader of this process's output need not wait for the JVM, which ends later.
        gateway = launch_gateway(conf, {"stdout": write, "stderr": write})
    except BaseException:
        os.close(write)
        # A JVM that has exited closed its end: the reader ends with its last line.
        reader.join(timeout=5)
        raise
    os.close(write)
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 as above


@contextmanager
def resolving_alone() -> Iterator[None]:
    """Let no other process of this user resolve packages at the same time: Ivy's folder is not safe for two."""
    try:
        folder = user_cache()
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(Path(folder, "resolving.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except (OSError, RuntimeError):
        yield  # without a folder of the user's own, Ivy fails in its own way
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
