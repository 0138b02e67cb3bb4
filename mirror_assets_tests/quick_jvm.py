"""Options of JVMs of tests: of one that works for minutes (`LONG`), and of one whose work is small (`OPTIONS`)."""

from __future__ import annotations

from pathlib import Path

from mirror_assets.process import user_cache

# No verification of classes, and a collector of one thread. Hadoop starts a `chmod` for each file that it makes, for
# which the JVM starts two processes without VFORK. By default, the JVM also collects all garbage each time that classes
# have filled the space which it foresaw: twenty megabytes at first, and Spark needs 200.
LONG = (
    "-XX:+UseSerialGC -XX:MetaspaceSize=512m -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    "-Djdk.lang.Process.launchMechanism=VFORK"
)
# The optimising compiler pays after some minutes only.
OPTIONS = f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m {LONG}"
# What every `java` below a process reads.
ENVIRONMENT = {"JDK_JAVA_OPTIONS": OPTIONS}
# Tests run thousands of small statements, for which compiling and re-planning take longer than the work. Runs in
# processes of their own (kills, the cluster, the notebook) have the settings that users have.
SMALL_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Only the UI shows the text of a plan; to write it takes a fifth of the time of a small statement.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.codegen.cache.maxEntries": "5000",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def own_cache(folder: Path) -> dict[str, str]:
    """Return the variable of a cache folder that has nothing but how this user's Spark starts.

    With an empty one, packages are resolved, and the JVM parses each class and writes an archive of them when it exits:
    a session took 8 to 17 seconds of the processor to start, and 4 with what is known.
    """
    starts = folder / "mirror_assets" / "spark"
    starts.mkdir(mode=0o700, parents=True)
    for known in (user_cache() / "spark").glob("*.js*"):
        (starts / known.name).symlink_to(known)
    return {"XDG_CACHE_HOME": str(folder)}
