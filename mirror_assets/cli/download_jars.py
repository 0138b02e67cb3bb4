"""The command `download-jars`: copies the JARs that Spark needs, for machines without access to Maven Central."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.output import note, show_json
from mirror_assets.composition import spark_settings_of
from mirror_assets.config.load import load_config


def download_jars(path: Path | None, folder: Path, *, as_json: bool) -> Exit:
    """Copy the JARs of this configuration's packages into the folder. Starts Spark to resolve unknown packages."""
    from mirror_assets.encode.session import fill_jar_folder

    # The folder that spark.jars_folder names may not exist yet: it is the one to fill, on this machine or another.
    settings = replace(spark_settings_of(load_config(path)), jars_folder=None)
    jars = fill_jar_folder(folder, settings.shown())
    if as_json:
        show_json([{"folder": str(folder), "jars": [jar.name for jar in jars]}])
    else:
        note(
            f"{len(jars)} JARs are in {folder}. Set spark.jars_folder to this folder in the mirror.yaml that uses them."
        )
    return Exit.FINE
