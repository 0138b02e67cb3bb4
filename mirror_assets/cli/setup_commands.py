"""Commands that prepare a mirror: doctor, download-jars."""

from __future__ import annotations

from pathlib import Path

import click

from mirror_assets.cli.exit import Exit
from mirror_assets.cli.options import (
    configured,
    examples,
    tables,
)


@click.command(epilog=examples("doctor", "doctor --no-spark --json", "doctor --table sales.orders --thorough"))
@tables
@click.option("--thorough", is_flag=True, help="Check the keys of all rows, not only of a sample.")
@click.option("--spark/--no-spark", "with_spark", default=True, help="Also test Spark, with the pipeline's settings.")
@configured
def doctor(config: Path | None, names: tuple[str, ...], *, thorough: bool, with_spark: bool, as_json: bool) -> Exit:
    """Test whether the landing zone and the sources are ready for mirroring.

    Each problem has its next step. Writes only into a scratch folder of the landing zone. Exit 1 if there is a
    problem.
    """
    from mirror_assets.cli import setup

    return setup.doctor(config, names, with_spark=with_spark, thorough=thorough, as_json=as_json)


@click.command(epilog=examples("download-jars ./jars"))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@configured
def download_jars(config: Path | None, folder: Path, *, as_json: bool) -> Exit:
    """Download the JARs that Spark needs into FOLDER.

    For machines that can't download packages: copy FOLDER there, and set `spark.jars_folder` in their mirror.yaml.
    """
    from mirror_assets.cli import download_jars as downloading

    return downloading.download_jars(config, folder, as_json=as_json)
