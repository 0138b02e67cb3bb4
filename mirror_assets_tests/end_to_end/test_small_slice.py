"""What one small slice costs a warm process, by counts: they don't depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable
from py4j.java_gateway import GatewayClient
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark.sql import SparkSession

from mirror_assets.encode.jvm import Jvm
from mirror_assets.encode.session import open_session, own_session, spark_settings
from mirror_assets.pipeline.land_slice import ProcessedSlice
from mirror_assets.pipeline.run import mirror_table
from mirror_assets_tests.lab import Lab


@pytest.fixture
def compiling(spark: SparkSession) -> SparkSession:
    """A session with the code generation and adaptive execution of users' sessions."""
    session = own_session(spark)
    for name, value in {
        "codegen.wholeStage": "true",
        "codegen.factoryMode": "FALLBACK",
        "adaptive.enabled": "true",
    }.items():
        session.conf.set(f"spark.sql.{name}", value)
    return session


def _land_update(lab: Lab, spark: SparkSession, amount: int) -> ProcessedSlice:
    """Commit an update of three rows, and land it."""
    DeltaTable(lab.uri).update({"amount": f"{amount}.5"}, predicate="id < 3")
    context = replace(lab.context, spark=lambda: spark)
    events = mirror_table(context, lab.replicator, lambda _: None, plan_again=False)
    (landed,) = (event for event in events if isinstance(event, ProcessedSlice))
    assert landed.record.markers.updates == 3
    return landed


def _jobs(spark: SparkSession) -> list[int]:
    """The number of stages of each of Spark's jobs so far."""
    context = Jvm(spark).session.sparkContext()
    context.listenerBus().waitUntilEmpty()
    listed = context.statusStore().jobsList(None)
    return sorted(len(str(listed.apply(index).stageIds().mkString(",")).split(",")) for index in range(listed.size()))


def _compiled(spark: SparkSession) -> int:
    metrics = Jvm(spark).root.org.apache.spark.metrics.source.CodegenMetrics
    return int(metrics.METRIC_COMPILATION_TIME().getCount())


@contextmanager
def _counted_commands() -> Iterator[list[str]]:
    """Collect the commands that Python sends to the JVM, without those that release objects.

    Python sends these when it searches for garbage, also for objects that earlier tests have made.
    """
    sent: list[str] = []
    real = GatewayClient.send_command

    def counted(self: GatewayClient, command: str, *rest: Any, **named: Any) -> str:  # noqa: ANN401 passed on
        if not command.startswith(MEMORY_COMMAND_NAME):
            sent.append(command)
        return str(real(self, command, *rest, **named))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GatewayClient, "send_command", counted)
        yield sent


def test_it_is_one_job_of_one_stage(mirrored: Lab, compiling: SparkSession) -> None:
    before = _jobs(compiling)
    _land_update(mirrored, compiling, 1)
    after = _jobs(compiling)
    for stages in before:
        after.remove(stages)
    assert after == [1]


def test_the_next_one_compiles_nothing(mirrored: Lab, compiling: SparkSession) -> None:
    for amount in range(2):
        _land_update(mirrored, compiling, amount)
    before = _compiled(compiling)
    _land_update(mirrored, compiling, 2)
    assert _compiled(compiling) == before


def test_python_sends_few_commands_to_the_jvm(mirrored: Lab, compiling: SparkSession) -> None:
    _land_update(mirrored, compiling, 1)
    with _counted_commands() as sent:
        _land_update(mirrored, compiling, 2)
    assert 0 < len(sent) <= 400


@pytest.mark.usefixtures("spark")
def test_an_owner_gets_its_session_again_in_few_commands() -> None:
    settings = spark_settings()
    open_session(settings, owner="a table")
    with _counted_commands() as sent:
        open_session(settings, owner="another")
        open_session(settings, owner="another")
    assert 0 < len(sent) <= 60
