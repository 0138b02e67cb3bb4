"""The faults: how each is planted and repaired, and which message reports it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from mirror_assets_tests.worlds.dagster_processes import DAEMON
from mirror_assets_tests.worlds.onelake.faults import Fault as Refusal
from mirror_assets_tests.worlds.onelake.faults import Reply
from mirror_assets_tests.worlds.planted.lake import Lake
from mirror_assets_tests.worlds.planted.site import Site

# The rule MirrorDaemonDead of deploy/prometheus/rules.yaml.
DAEMON_IS_DEAD_SECONDS = 300.0


@dataclass(frozen=True)
class Fault:
    """One fault. `table` is whose it is, of those that are one table's; `says` is in the text of its message.

    `lasts` is how long it continues after its first message, in seconds: time
    to report its consequences. `is_dead` is for the fault that no alert can report: it reads the metrics. For
    `down_seconds` from the plant on, the receiver answers 503. For each of `half_days`, the clock of all processes is
    advanced by half a day, and the fault is repeated once.
    """

    name: str
    plant: Callable[[Site], None]
    repair: Callable[[Site], None]
    says: str
    table: str | None = None
    lasts: float = 0.0
    down_seconds: float = 0.0
    half_days: int = 0
    is_dead: Callable[[Site], bool] | None = None


def _of_table(
    name: str, table: str, says: str, plant: Callable[[Lake, str], None], repair: Callable[[Lake, str], None] | None
) -> Fault:
    """A fault of one table's files; without `repair`, a rebuild repairs it."""

    def repaired(site: Site) -> None:
        if repair is None:
            site.command("rebuild", f"shop.{table}", "--yes")
        else:
            repair(site.lake, table)

    return Fault(name, lambda site: plant(site.lake, table), repaired, says, table)


def _of_all(name: str, says: str, switch: Callable[[Site, bool], None]) -> Fault:
    """A fault of everything, which lasts until the checks have run, too; `switch` plants it with True."""
    return Fault(name, lambda site: switch(site, True), lambda site: switch(site, False), says, lasts=330.0)


def _delete_null_key(site: Site, table: str) -> None:
    site.lake.open(table).delete("id IS NULL")
    site.command("rebuild", f"shop.{table}", "--yes")


def _fill_disk(site: Site, full: bool) -> None:
    if full:
        site.staging.fill()
        site.lake.update("items")
    else:
        site.staging.free()


def _refuse(site: Site, refused: bool) -> None:
    if refused:
        site.onelake.faults.add(Refusal(Reply(403, "Forbidden"), times=1_000_000))
    else:
        site.onelake.faults.end()


def _pause(site: Site, paused: bool) -> None:
    site.database.state = "Paused" if paused else "Running"


def _daemon_is_dead(site: Site) -> bool:
    beats = [value for (name, _), value in site.metrics().items() if name == "mirror_daemon_heartbeat_time_seconds"]
    return bool(beats) and time.time() - min(beats) > DAEMON_IS_DEAD_SECONDS


TABLES = ("orders", "returns", "customers", "prices", "stock", "carts", "visits", "items", "parcels", "bills")
HELD = ("prices", "bills")
# Their epochs stay 1, whatever is planted.
NEVER_REBUILT = ("mounted.invoices", "mounted.receipts", "mounted.refunds", "granted.leases", "granted.tenants")

# Those of one table each are planted together: each message must name the right one.
OF_TABLES = (
    _of_table("source away", "orders", "orders", Lake.move_away, Lake.move_back),
    _of_table("gap in the log", "returns", "log_gap", Lake.commit_behind_gap, Lake.close_gap),
    Fault(
        "NULL key",
        lambda site: site.lake.append_null_key("customers"),
        lambda site: _delete_null_key(site, "customers"),
        "key_presence",
        "customers",
    ),
    _of_table("held break", "prices", "prices", Lake.change_type, None),
    _of_table(
        "lost files and a rebuild that fails", "stock", "the rebuild fails as well", Lake.commit_lost, Lake.restore
    ),
    Fault(
        "table failed in Fabric",
        lambda site: site.failed.add("carts"),
        lambda site: site.failed.discard("carts"),
        "InvalidRowMarker",
        "carts",
    ),
    _of_table("clock off", "visits", "after this machine's clock", Lake.commit_in_the_future, Lake.update),
)
# Those of everything come one after another.
OF_ALL = (
    _of_all("expired token", "token_refused", Site.refuse_secret),
    _of_all("full disk", "space", _fill_disk),
    _of_all("paused Fabric", "paused", _pause),
    _of_all("landing zone refuses", "can't be used", _refuse),
    Fault(
        "daemon dead",
        lambda site: site.processes.kill(DAEMON),
        lambda site: site.processes.supervise(),
        "",
        is_dead=_daemon_is_dead,
    ),
    _of_all("mount away", "mounted", lambda site, away: site.set_mounted(not away)),
    _of_all("two thirds of a mount away", "mounted", Site.lose_most),
    _of_all("grant revoked", "granted", Site.revoke_grant),
    Fault(
        "receiver down",
        lambda site: site.lake.append_null_key("parcels"),
        lambda site: _delete_null_key(site, "parcels"),
        "key_presence",
        "parcels",
        down_seconds=600.0,
    ),
    # The last one: the clock stays ahead.
    replace(_of_table("two days on hold", "bills", "bills", Lake.change_type, None), half_days=4),
)
