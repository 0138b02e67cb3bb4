"""The command `prepare`: what a machine does once, so that later processes start Spark sooner."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.composition import SparkSettings
from mirror_assets.config import load_config


@dataclass(frozen=True)
class Prepared:
    """The archive of classes, or why there is none; and the folder that JARs were copied to."""

    archive: str | None
    message: str
    jars: str | None = None


def prepare(path: Path | None, jars: Path | None, *, as_json: bool) -> Exit:
    """Make the archive of Spark's classes for this configuration; it fails when Spark does. Copy JARs to `jars`."""
    from mirror_assets.encode.class_archive import make_archive
    from mirror_assets.encode.jar_folder import fill_jar_folder

    settings, code = SparkSettings.of(load_config(path)).shown(), Exit.FINE
    try:
        made = make_archive(settings)
        message = f"Spark's classes are in {made}" if made else "Nothing to prepare: Spark, or its JVM, is not our own"
    except (OSError, subprocess.SubprocessError) as error:
        made, message, code = None, f"error: Spark failed while its classes were recorded ({error})", Exit.FAILED
    if jars is not None and code is Exit.FINE:
        message = f"{message}. {len(fill_jar_folder(jars, settings))} JARs are in {jars}: set spark.jars_folder"
    if as_json:
        show_json([Prepared(str(made) if made else None, message, str(jars) if jars else None)])
    else:
        note(message)
    return code
