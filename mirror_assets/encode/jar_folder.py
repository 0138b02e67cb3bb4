"""A folder with all JARs that Spark needs in addition to its own, for machines that can't download packages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_assets.encode.quick_start import PACKAGES, QuickStart
from mirror_assets.errors import ErrorCode, ErrorRow, SettingError


def jars_in(folder: Path, packages: Sequence[str]) -> tuple[Path, ...]:
    """Return the folder's JARs. Raises JARS_MISSING unless those of the packages (`group:name:version`) are there."""
    jars = tuple(sorted(folder.glob("*.jar")))
    wanted = {package: "-".join(package.split(":")[1:3]) for package in packages}
    lacking = [package for package, name in wanted.items() if not any(jar.stem.endswith(name) for jar in jars)]
    if lacking:
        raise JARS_MISSING(folder=folder, packages=lacking)
    return jars


def fill_jar_folder(folder: Path, settings: Mapping[str, str]) -> tuple[Path, ...]:
    """Copy the JARs of the settings' packages and their dependencies into the folder; return them.

    Starts Spark to resolve unknown packages. Raises JARS_UNKNOWN if Spark doesn't report the JARs, SPARK_NOT_STARTED,
    and OSError.
    """
    from mirror_assets.encode.session import open_session

    if not QuickStart.of(settings).jars:
        open_session(settings)
    jars = QuickStart.of(settings).jars
    if not jars:
        raise JARS_UNKNOWN(packages=settings.get(PACKAGES) or "no packages")
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(Path(shutil.copy(jar, folder)) for jar in jars)


JARS_MISSING = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "A folder of JARs lacks some that the session needs.",
    "spark.jars_folder {folder} has no JAR of {packages}.",
    "run `mirror-assets download-jars FOLDER` on a machine that can download them, and copy the folder here.",
    "mirror-assets doctor --table TABLE",
)
JARS_UNKNOWN = ErrorRow(
    ErrorCode.SESSION_UNFIT,
    SettingError,
    "Spark doesn't report the JARs of these packages.",
    "can't determine the JARs of {packages}.",
    "remove spark.jars, spark.jars.ivy and spark.jars.packages from spark.settings, use a local master, and retry.",
    "mirror-assets doctor --table TABLE",
)
