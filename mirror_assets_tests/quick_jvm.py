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
