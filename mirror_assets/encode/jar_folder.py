"""A folder with all JARs that Spark needs beside its own, for machines that can't download packages."""

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
    """Copy the JARs of the settings' packages, with all that they need, into the folder; return them.

    Raises jars_unknown where Spark does not say what it has resolved, and OSError.
    """
    jars = QuickStart.of(settings).jars
    if not jars:
        raise jars_unknown(settings.get(PACKAGES, ""))
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(Path(shutil.copy(jar, folder)) for jar in jars)


def jars_missing(folder: Path, packages: Sequence[str]) -> SettingError:
    """The folder of JARs lacks some."""
    return SettingError(
        f"spark.jars_folder {folder} has no JAR of {', '.join(packages)}.",
        "run `mirror-assets prepare --jars FOLDER` on a machine that can download them, and copy its folder here.",
        code=ErrorCode.SESSION_UNFIT,
    )


def jars_unknown(packages: str) -> SettingError:
    """Spark was not asked for packages, or takes them from elsewhere."""
    return SettingError(
        f"it is not known which JARs belong to {packages or 'no packages'}.",
        "leave spark.jars, spark.jars.ivy and spark.jars.packages out of spark.settings, with a local master; then run "
        "it again.",
        code=ErrorCode.SESSION_UNFIT,
    )
