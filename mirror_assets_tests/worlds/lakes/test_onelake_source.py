"""OneLake as source, landing zone and mirror at once: busy, signed out and slow to show what is new."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from mirror_assets.errors import RetryError
from mirror_assets.features.fabric.fabric_mirror import FabricMirror
from mirror_assets.landing.format import MarkerCounts
from mirror_assets.pipeline.plan import plan_table
from mirror_assets.pipeline.reconcile_table import reconcile_table
from mirror_assets.pipeline.repair_table import repair_table
from mirror_assets.verify.reconciliation import ReconcileState, Reconciliation
from mirror_assets_tests.features.fabric.conftest import client_of
from mirror_assets_tests.lab import TABLE
from mirror_assets_tests.worlds.fabric.databases import LoopbackDatabase, replicating
from mirror_assets_tests.worlds.fabric.loopback import LoopbackFabric
from mirror_assets_tests.worlds.lakes.lake import LakeLab, StoreAtHand
from mirror_assets_tests.worlds.onelake.faults import Fault, Lag, Reply
from mirror_assets_tests.worlds.onelake.operations import Operation
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake
from mirror_assets_tests.worlds.onelake.stores import loopback_store

_CHANGES = ("UPDATE {t} SET amount = 100 WHERE id IN (1, 2)", "DELETE FROM {t} WHERE id = 3")
_BUSY = Reply(503, "ServerBusy")
_THROTTLED = Reply(429, "TooManyRequests", {"Retry-After": "1"})
_LISTINGS = (Operation.LIST, Operation.LIST_BLOBS)


@dataclass(frozen=True)
class _Both:
    """A lakehouse and a mirrored database of one OneLake; a first load has landed, two commits wait."""

    lab: LakeLab
    server: LoopbackOneLake
    tables: str  # the folder of the mirrored database's tables

    def fail(self, action: Reply, path: str, *, nth: int = 1, times: int = 1, on: Operation | None = None) -> None:
        """Answer requests of the source like this."""
        self.server.faults.add(Fault(action, on, path, nth=nth, times=times))

    def lag(self, names: str, times: int) -> None:
        """Let listings not show these names."""
        self.server.faults.add(*(Fault(Lag(f"*{names}"), on, times=times) for on in _LISTINGS))

    def requests(self) -> list[str]:
        """The requests for the source since the last call, as operations and ends of paths."""
        found = [r for r in self.server.log.storage if "Tables" in r.path or r.operation in _LISTINGS]
        self.server.log.reset()
        return [f"{r.operation.value} {r.path.rpartition('/')[2]}" for r in found]

    def goes_on(self) -> None:
        """Mirror what waits, without faults; the mirror equals its source, and nothing was rebuilt."""
        self.server.faults.clear()
        self.lab.mirror()
        manifest = self.lab.context.manifest()
        assert manifest is not None
        assert manifest.epoch == 1
        assert self.lab.compare() is ReconcileState.EQUAL


@pytest.fixture
def short_lived(onelake: LoopbackOneLake) -> float:
    """Tokens that last two seconds, fewer than a slice takes; nobody has one that lasts longer."""
    onelake.entra.lifetime = 2.0
    return 2.0


@pytest.fixture
def both(onelake: LoopbackOneLake, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Both:
    monkeypatch.setenv("SSL_CERT_FILE", str(onelake.ca))
    for name, value in onelake.environment().items():
        monkeypatch.setenv(name, value)
    lakehouse, mirrored = onelake.new_item(), onelake.new_item()
    host = onelake.url.removeprefix("https://")
    root, tables = (f"abfss://{item.workspace}@{host}/{item.guid}/Tables" for item in (lakehouse, mirrored))
    place = f'{{url: "{mirrored.url}", credential: client_secret, staging: upload, ca_bundle: "{onelake.ca}"}}'
    lab = LakeLab(
        spark,
        StoreAtHand("onelake", root, "credential: client_secret"),
        "sales/orders",
        tmp_path,
        f"{{onelake: {place}}}",
        loopback_store(onelake, mirrored),
    )
    lab.configure({"keys": "[id]"})
    lab.create()
    assert [done.planned.last for done in lab.mirror()] == [1]
    lab.sql(*_CHANGES)
    onelake.reset()
    return _Both(lab, onelake, tables)


@pytest.mark.long(20)
@pytest.mark.parametrize(
    ("path", "action"),
    [
        ("*", _BUSY),
        *(
            pytest.param(path, action, marks=pytest.mark.soak)
            for path in ("Tables/sales/orders/_delta_log/*", "Tables/sales/orders/*.parquet", "*")
            for action in (_BUSY, _THROTTLED)
        ),
    ],
)
def test_what_is_busy_for_a_moment_is_asked_again(both: _Both, action: Reply, path: str) -> None:
    """The source's log is read by this process, its files by Spark; `*` is the landing zone, too."""
    for nth in (1, 3, 6):
        both.fail(action, path, nth=nth, times=2)
    assert both.lab.mirror()
    assert both.server.faults.unmet == ()
    both.goes_on()


def test_a_source_that_remains_busy_is_reported_and_mirrored_later(both: _Both) -> None:
    both.fail(_BUSY, "Tables/sales/orders/_delta_log/*.json", times=1_000)
    with pytest.raises(RetryError, match="orders"):
        plan_table(both.lab.context)
    both.goes_on()


@pytest.mark.long(20)
def test_tokens_that_end_are_replaced(short_lived: float, both: _Both) -> None:
    both.server.entra.lifetime = short_lived
    assert both.lab.mirror()
    tokens = [record for record in both.server.log.records if record.operation is Operation.TOKEN]
    assert len(tokens) > 1
    both.goes_on()


def test_a_refused_token_is_reported_and_the_next_one_is_used(both: _Both) -> None:
    both.fail(Reply(401, "InvalidAuthenticationInfo"), "Tables/sales/orders/_delta_log/*", times=1_000)
    with pytest.raises(Exception, match="orders") as caught:
        plan_table(both.lab.context)
    assert "abfss://" in str(caught.value)
    both.goes_on()


def test_a_listing_that_does_not_show_the_newest_commit_yet(both: _Both) -> None:
    """The table seems older by a commit, or the commit is found all the same: no commit is lost, no break is seen."""
    both.lag("/00000000000000000003.json", times=1_000)
    with pytest.raises(RetryError, match="does not list the newest commit yet"):
        both.lab.mirror()  # it lists the commit's checksum
    both.goes_on()


def test_a_listing_that_shows_nothing_of_the_newest_commit_yet(both: _Both) -> None:
    both.lag("/00000000000000000003.*", times=1_000)
    assert [done.planned.last for done in both.lab.mirror()] == [2]
    both.goes_on()


def test_a_listing_that_does_not_show_a_commit_in_between_is_no_break(both: _Both) -> None:
    both.lag("/00000000000000000002.json", times=1_000)
    try:
        both.lab.mirror()
    except RetryError:
        pass
    both.goes_on()


def test_a_quiet_table_costs_one_listing_and_the_plan_of_a_commit_some_requests(both: _Both) -> None:
    both.lab.mirror()
    mark = both.lab.context.log.tip_mark(3)
    assert mark is not None
    both.requests()
    assert both.lab.context.log.is_still_tip(mark)
    assert len(both.requests()) == 1
    both.lab.sql("UPDATE {t} SET amount = 7 WHERE id = 7")
    context = both.lab.context
    both.requests()
    assert plan_table(context).slices
    asked = both.requests()
    assert len(asked) <= 16, asked


@pytest.mark.long(20)
def test_a_mirror_in_onelake_is_compared_and_repaired(
    both: _Both, onelake: LoopbackOneLake, fabric: LoopbackFabric
) -> None:
    """The stand-in plays Fabric; its table is copied to where Fabric has it."""
    lab, zone = both.lab, both.lab.zone
    assert zone is not None
    lab.mirror()
    status = lab.replicator.table(TABLE)
    assert status is not None
    for damage in ("DELETE FROM {m} WHERE id = 1", "UPDATE {m} SET amount = 0 WHERE id = 2"):
        lab.spark.sql(damage.format(m=f"delta.`{status.location}`"))
    database = fabric.interface.add(LoopbackDatabase("sales", state="Running"))
    database.tables = replicating(lab.replicator)
    client = client_of(fabric, onelake.credential())
    mirror = FabricMirror(client, UUID(database.id), zone, both.tables)

    def compare() -> Reconciliation:
        there = mirror.table(TABLE)
        assert there is not None
        assert there.location.startswith("abfss://")
        rows = lab.spark.read.format("delta").load(status.location)
        rows.write.format("delta").mode("overwrite").save(there.location)
        return reconcile_table(lab.context, mirror)

    assert [sample.key for sample in compare().samples] == [("1",), ("2",)]
    repaired = repair_table(lab.context, mirror, lambda _: None)
    assert repaired is not None
    assert repaired.record.markers == MarkerCounts(updates=1, upserts=1)
    assert compare().state is ReconcileState.EQUAL
