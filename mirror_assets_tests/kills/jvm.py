"""Settings with which a small Spark starts in a third of the time: no optimizing compiler, no Ivy, classes from a file.

A JVM spends most of a short run on loading Spark's classes. The first run leaves them in an archive that the next map.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from mirror_assets.storage.onelake.abfs import HADOOP_AZURE
from mirror_assets_tests.quick_jvm import OPTIONS


class QuickSpark:
    """The settings of all runs of a proof; `folder` holds the archive."""

    def __init__(self, folder: Path) -> None:
        self._archive = folder / "spark.jsa"

    def settings(self, *, azure: bool = False) -> dict[str, str]:
        """Spark settings by name; `spark.driver.extraJavaOptions` is apart. `azure`: the session needs abfss."""
        small = {
            "spark.master": "local[1]",
            "spark.driver.memory": "1g",
            # A scan of several small files is several partitions, as one of large files is.
            "spark.sql.files.maxPartitionBytes": "4MB",
        }
        jars = _delta_jars()
        if not jars:
            return small  # a machine that has never run Spark: Ivy downloads what is needed
        here = {"spark.driver.extraClassPath": ":".join(map(str, jars)), "spark.jars.packages": ""}
        return small | here | ({"spark.jars.packages": HADOOP_AZURE} if azure else {})

    def java_options(self) -> str:
        """Options of the JVM; the first to end by itself leaves the archive."""
        flag = "SharedArchiveFile" if self._archive.exists() else "ArchiveClassesAtExit"
        return f"{OPTIONS} -XX:{flag}={self._archive}"


def _delta_jars() -> list[Path]:
    """Delta's JARs where Ivy has put them for other sessions; none if they are of another version."""
    found = [jar for folder in Path.home().glob(".ivy2*/jars") for jar in folder.glob("io.*.jar")]
    delta = f"io.delta_delta-spark_4.2_2.13-{version('delta-spark')}.jar"
    wanted = [jar for jar in found if jar.name.startswith(("io.delta_", "io.unitycatalog_"))]
    return wanted if delta in {jar.name for jar in wanted} else []
