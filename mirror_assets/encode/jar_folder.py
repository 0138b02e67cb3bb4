"""A folder with all JARs that Spark needs in addition to its own, for machines that can't download packages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from mirror_assets.encode.quick_start import PACKAGES, QuickStart
from mirror_assets.errors import ErrorCode, SettingError


def jars_in(folder: Path, packages: Sequence[str]) -> tuple[Path, ...]:
    """Return the folder's JARs. Raises jars_missing unless those of the packages (`group:name:version`) are there."""
    jars = tuple(sorted(folder.glob("*.jar")))
    wanted = {package: "-".join(package.split(":")[1:3]) for package in packages}
    lacking = [package for package, name in wanted.items() if not any(jar.stem.endswith(name) for jar in jars)]
    if lacking:
        raise jars_missing(folder, lacking)
    return jars


def fill_jar_folder(folder: Path, settings: Mapping[str, str]) -> tuple[Path, ...]:
    """Copy the JARs of the settings' packages and their dependencies into the folder; return them.

    Starts Spark to resolve unknown packages. Raises jars_unknown if Spark doesn't report the JARs, SparkNotStarted, and
    OSError.
    """
    from mirror_assets.encode.session import open_session

    if not QuickStart.of(settings).jars:
        open_session(settings)
    jars = QuickStart.of(settings).jars
    if not jars:
        raise jars_unknown(settings.get(PACKAGES, ""))
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(Path(shutil.copy(jar, folder)) for jar in jars)


def jars_missing(folder: Path, packages: Sequence[str]) -> SettingError:
    """Return the error for a folder without the JARs of these packages."""
    return SettingError(
        f"spark.jars_folder {folder} has no JAR of {', '.join(packages)}.",
        "run `mirror-assets download-jars FOLDER` on a machine that can download them, and copy the folder here.",
        code=ErrorCode.SESSION_UNFIT,
    )


def jars_unknown(packages: str) -> SettingError:
    """Return the error for packages whose JARs Spark doesn't report."""
    return SettingError(
        f"can't determine the JARs of {packages or 'no packages'}.",
        "remove spark.jars, spark.jars.ivy and spark.jars.packages from spark.settings, use a local master, and retry.",
        code=ErrorCode.SESSION_UNFIT,
    )
