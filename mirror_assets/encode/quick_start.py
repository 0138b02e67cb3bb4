"""Starts a local Spark sooner: names the JARs of its packages, and maps an archive of their classes.

Spark resolves `spark.jars.packages` anew at each start, copies what it found, and loads and verifies each class from
its JAR. A local Spark needs none of this twice. The folder of what is known has a list of JARs for each list of
packages, and an archive of the JVM's for each class path; both can be deleted at any time. They name and hold code that
runs, so a folder that others may write to is not used.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark import __version__
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from mirror_assets.user_cache import user_cache

PACKAGES = "spark.jars.packages"
_CLASS_PATH, _OPTIONS = "spark.driver.extraClassPath", "spark.driver.extraJavaOptions"
# With one of these, packages come from elsewhere, or JARs take another way into the JVM.
_OWN_WAYS = (
    "spark.jars",
    "spark.jars.excludes",
    "spark.jars.ivy",
    "spark.jars.ivySettings",
    "spark.jars.repositories",
    "spark.driver.userClassPathFirst",
    "spark.remote",
)
# Versions that may mean other files tomorrow.
_MOVING = re.compile(r"SNAPSHOT|latest\.|[\[\](+]")
# The JVM takes no archive of classes that an agent may change, and only one archive.
_OWN_ARCHIVE = re.compile(r"-agent|-javaagent|-Xshare|SharedArchiveFile|ArchiveClassesAtExit")
# An archive that doesn't fit is left aside, in silence.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_OTHERS_WRITE = 0o022
_OWN_COMPILER = re.compile("Tiered")
# The optimising compiler takes a quarter of the processor time of a short run, and pays only in a long one.
_NOT_OPTIMISED = "-XX:TieredStopAtLevel=1"


@dataclass(frozen=True)
class QuickStart:
    """What is known of how a local Spark with these settings starts; `folder` is None where nothing may be kept."""

    settings: Mapping[str, str]
    folder: Path | None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> QuickStart:
        """Return that of the user."""
        return cls(settings, _own_folder() if _is_plain(settings) else None)

    def started(self) -> dict[str, str]:
        """Return the settings to start with: unchanged while the JARs are not known, or one of them is gone."""
        archive = self.archive
        mapped = f"-XX:SharedArchiveFile={shlex.quote(str(archive))} {_QUIET}" if archive and archive.is_file() else ""
        return self._with_options(mapped)

    def recording(self, archive: Path) -> dict[str, str]:
        """Return the settings with which the JVM writes the classes that it has loaded into an archive at its end."""
        return self._with_options(f"-XX:ArchiveClassesAtExit={shlex.quote(str(archive))} {_QUIET}")

    def keep_jars(self, session: SparkSession) -> None:
        """Keep the list of JARs of a session that has just started, if that has resolved the packages."""
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
        """The JARs of the packages, if they are known and all there."""
        if self.folder is None:
            return ()
        try:
            named = json.loads(self._list(self.folder).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ()
        return tuple(named) if all(Path(jar).is_file() and os.pathsep not in jar for jar in named) else ()

    @property
    def archive(self) -> Path | None:
        """Where the archive of this class path for this Java is, or would be."""
        java, jars, options = _java(), self.jars, self.settings.get(_OPTIONS, "")
        if self.folder is None or java is None or not jars or _OWN_ARCHIVE.search(options):
            return None
        return self.folder / f"{_digest([java, *self._class_path(jars)])}.jsa"

    def _with_options(self, options: str) -> dict[str, str]:
        jars = self.jars
        if not jars:
            return dict(self.settings)
        joined = " ".join(filter(None, (self.settings.get(_OPTIONS, ""), options)))
        named = {PACKAGES: "", _CLASS_PATH: os.pathsep.join(self._class_path(jars))}
        return {**self.settings, **named, **({_OPTIONS: joined} if joined else {})}

    def _class_path(self, jars: Sequence[str]) -> list[str]:
        """Return the class path: Spark's own classes come before those of packages, as when Spark resolves them."""
        wanted, spark = self.settings.get(_CLASS_PATH), str(Path(_find_spark_home(), "jars", "*"))
        return [*([wanted] if wanted else []), str(_conf_folder()), spark, *jars]

    def _list(self, folder: Path) -> Path:
        return folder / f"{_digest([__version__, self.settings[PACKAGES]])}.json"


def for_brief_work(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a local Spark that ends after small slices: its JVM compiles fast, and optimises less."""
    options = settings.get(_OPTIONS, "")
    is_local = settings.get("spark.master", "").startswith("local")
    if not is_local or _has_own_settings() or _OWN_COMPILER.search(options):
        return dict(settings)
    return {**settings, _OPTIONS: f"{options} {_NOT_OPTIMISED}".strip()}


def _is_plain(settings: Mapping[str, str]) -> bool:
    """Return whether a Spark in one process takes packages of fixed versions from where all do."""
    packages = settings.get(PACKAGES, "")
    is_local = settings.get("spark.master", "").startswith("local")
    is_moving, is_own = _MOVING.search(packages), any(map(settings.get, _OWN_WAYS)) or _has_own_settings()
    return bool(is_local and packages and not is_moving and not is_own)


def _has_own_settings() -> bool:
    """Return whether this machine sets Spark up in places that ours would override."""
    return "PYSPARK_SUBMIT_ARGS" in os.environ or (_conf_folder() / "spark-defaults.conf").exists()


def _conf_folder() -> Path:
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf"))


def _own_folder() -> Path | None:
    """Return the folder of what is known if only this user can write to it, or None."""
    try:
        folder = user_cache() / "spark"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except (OSError, RuntimeError):
        return None
    is_own = folder.is_dir() and not folder.is_symlink() and found.st_uid == os.getuid()
    return folder if is_own and not found.st_mode & _OTHERS_WRITE else None


def _java() -> str | None:
    """Return the path of the Java that Spark will start, without links."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    return str(Path(found).resolve()) if found else None


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
