"""Options of a JVM whose work is small: it starts sooner, and spends no processor time on what pays in long runs."""

from __future__ import annotations

# No optimising compiler, no verification of classes, and a collector of one thread. Hadoop starts a `chmod` for each
# file that it makes: without VFORK, the JVM starts two processes for one.
OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Djdk.lang.Process.launchMechanism=VFORK"
)
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
