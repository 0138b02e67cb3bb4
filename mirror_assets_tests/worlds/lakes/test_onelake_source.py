"""OneLake as source, landing zone and mirror at once: busy, signed out and slow to show what is new."""

from __future__ import annotations

from contextlib import suppress
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
from mirror_assets_tests.worlds.onelake.messages import Operation
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
        self.server.faults.add(Fault(action, on, path, nth=nth, times=times))

    def lag(self, names: str, times: int) -> None:
        self.server.faults.add(*(Fault(Lag(f"*{names}"), on, times=times) for on in _LISTINGS))

    def goes_on(self) -> None:
        """Mirror what waits, without faults; the mirror equals its source, and nothing was rebuilt."""
        self.server.faults.clear()
        self.lab.mirror()
        manifest = self.lab.table().manifest()
        assert manifest is not None
        assert manifest.epoch == 1
        assert self.lab.is_equal()


@pytest.fixture
def short_lived(onelake: LoopbackOneLake) -> float:
    """Tokens that last two seconds, fewer than a slice takes; nobody has one that lasts longer."""
    onelake.entra.lifetime = 2.0
    return 2.0


@pytest.fixture
def both(signed_in: LoopbackOneLake, spark: SparkSession, tmp_path: Path) -> _Both:
    onelake = signed_in
    lakehouse, mirrored = onelake.new_item(), onelake.new_item()
    host = onelake.url.removeprefix("https://")
    root, tables = (f"abfss://{item.workspace}@{host}/{item.guid}/Tables" for item in (lakehouse, mirrored))
    place = f'{{url: "{mirrored.url}", credential: client_secret, staging: upload, ca_bundle: "{onelake.ca}"}}'
    lab = LakeLab(
        spark,
        tmp_path,
        StoreAtHand("onelake", root, "credential: client_secret"),
        "sales/orders",
        f"{{onelake: {place}}}",
        zone=loopback_store(onelake, mirrored),
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


@pytest.mark.parametrize("action", [_BUSY, Reply(401, "InvalidAuthenticationInfo")], ids=["busy", "refused token"])
def test_a_source_that_stays_unreadable_is_reported_and_mirrored_later(both: _Both, action: Reply) -> None:
    both.fail(action, "Tables/sales/orders/_delta_log/*", times=1_000)
    with pytest.raises(RetryError if action is _BUSY else Exception, match="orders") as caught:
        plan_table(both.lab.table())
    assert "abfss://" in str(caught.value)
    both.goes_on()


@pytest.mark.long(20)
def test_tokens_that_end_are_replaced(short_lived: float, both: _Both) -> None:
    both.server.entra.lifetime = short_lived
    assert both.lab.mirror()
    tokens = [record for record in both.server.log.records if record.operation is Operation.TOKEN]
    assert len(tokens) > 1
    both.goes_on()


@pytest.mark.parametrize(
    ("names", "landed"),
    [("/00000000000000000003.json", None), ("/00000000000000000003.*", [2]), ("/00000000000000000002.json", ())],
    ids=["the newest commit, but its checksum", "nothing of the newest commit", "a commit in between"],
)
def test_a_listing_that_does_not_show_a_commit_yet_is_no_break(
    both: _Both, names: str, landed: list[int] | tuple[()] | None
) -> None:
    """The table seems older by a commit, or the commit is found all the same: no commit is lost, no break is seen."""
    both.lag(names, times=1_000)
    if landed:
        assert [done.planned.last for done in both.lab.mirror()] == landed
    elif landed is None:
        with pytest.raises(RetryError, match="does not list the newest commit yet"):
            both.lab.mirror()
    else:
        with suppress(RetryError):
            both.lab.mirror()
    both.goes_on()


@pytest.mark.long(20)
def test_a_mirror_in_onelake_is_compared_and_repaired(
    both: _Both, onelake: LoopbackOneLake, fabric: LoopbackFabric
) -> None:
    """The stand-in plays Fabric; its table is copied to where Fabric has it."""
    lab, zone = both.lab, both.lab.zone
    assert zone is not None
    lab.mirror()
    lab.replicator.poll()
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
        return reconcile_table(lab.table(), mirror)

    assert [sample.key for sample in compare().samples] == [("1",), ("2",)]
    repaired = repair_table(lab.table(), mirror, lambda _: None)
    assert repaired is not None
    assert repaired.record.markers == MarkerCounts(updates=1, upserts=1)
    assert compare().state is ReconcileState.EQUAL
