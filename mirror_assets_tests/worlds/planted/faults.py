"""The faults: how each is planted and repaired, and which message reports it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from mirror_assets_tests.worlds.dagster_processes import DAEMON
from mirror_assets_tests.worlds.onelake.faults import Fault as Refusal
from mirror_assets_tests.worlds.onelake.faults import Reply
from mirror_assets_tests.worlds.planted.site import Site

# The rule MirrorDaemonDead of deploy/prometheus/rules.yaml.
DAEMON_IS_DEAD_SECONDS = 300.0
_AN_HOUR = 3600.0


@dataclass(frozen=True)
class Fault:
    """One fault. `table` is whose it is, of those that are one table's; `says` is in the text of its message.

    Without `repair`, it ends automatically. `lasts` is how long it continues after its first message, in seconds: time
    to report its consequences. `is_dead` is for the fault that no alert can report: it reads the metrics. For
    `down_seconds` from the plant on, the receiver answers 503. For each of `half_days`, the clock of all processes is
    advanced by half a day, and the fault is repeated once.
    """

    name: str
    plant: Callable[[Site], None]
    repair: Callable[[Site], None] | None
    says: str
    table: str | None = None
    lasts: float = 0.0
    down_seconds: float = 0.0
    half_days: int = 0
    is_dead: Callable[[Site], bool] | None = None


def _source_away(site: Site) -> None:
    site.lake.path("orders").rename(site.lake.folder / "elsewhere")


def _source_back(site: Site) -> None:
    (site.lake.folder / "elsewhere").rename(site.lake.path("orders"))


def _delete_null_key(site: Site, table: str) -> None:
    site.lake.open(table).delete("id IS NULL")
    site.command("rebuild", f"shop.{table}", "--yes")


def _fill_disk(site: Site) -> None:
    site.staging.fill()
    site.lake.update("items")


def _set_database(site: Site, state: str) -> None:
    site.database.state = state


def _daemon_is_dead(site: Site) -> bool:
    beats = [value for (name, _), value in site.metrics().items() if name == "mirror_daemon_heartbeat_time_seconds"]
    return bool(beats) and time.time() - min(beats) > DAEMON_IS_DEAD_SECONDS


TABLES = ("orders", "returns", "customers", "prices", "stock", "carts", "visits", "items", "parcels", "bills")
HELD = ("prices", "bills")
# Their epochs stay 1, whatever is planted.
NEVER_REBUILT = ("mounted.invoices", "mounted.receipts", "mounted.refunds", "granted.leases", "granted.tenants")

# Those of one table each are planted together: each message must name the right one.
OF_TABLES = (
    Fault("source away", _source_away, _source_back, "orders", "orders"),
    Fault(
        "gap in the log",
        lambda site: site.lake.commit_behind_gap("returns"),
        lambda site: site.lake.close_gap("returns"),
        "log_gap",
        "returns",
    ),
    Fault(
        "NULL key",
        lambda site: site.lake.append_null_key("customers"),
        lambda site: _delete_null_key(site, "customers"),
        "key_presence",
        "customers",
    ),
    Fault(
        "held break",
        lambda site: site.lake.change_type("prices"),
        lambda site: site.command("rebuild", "shop.prices", "--yes"),
        "prices",
        "prices",
    ),
    Fault(
        "lost files and a rebuild that fails",
        lambda site: site.lake.commit_lost("stock"),
        lambda site: site.lake.restore("stock"),
        "the rebuild fails as well",
        "stock",
    ),
    Fault(
        "table failed in Fabric",
        lambda site: site.failed.add("carts"),
        lambda site: site.failed.discard("carts"),
        "InvalidRowMarker",
        "carts",
    ),
    Fault(
        "clock off",
        lambda site: site.lake.commit_dated("visits", _AN_HOUR),
        lambda site: site.lake.update("visits"),
        "after this machine's clock",
        "visits",
    ),
)
# Those of everything come one after another. One that many tables show lasts until the checks have run, too.
OF_ALL = (
    Fault(
        "expired token",
        lambda site: site.refuse_secret(refused=True),
        lambda site: site.refuse_secret(refused=False),
        "token_refused",
        lasts=330.0,
    ),
    Fault("full disk", _fill_disk, lambda site: site.staging.free(), "space", lasts=330.0),
    Fault(
        "paused Fabric",
        lambda site: _set_database(site, "Paused"),
        lambda site: _set_database(site, "Running"),
        "paused",
        lasts=330.0,
    ),
    Fault(
        "landing zone refuses",
        lambda site: site.onelake.faults.add(Refusal(Reply(403, "Forbidden"), times=1_000_000)),
        lambda site: site.onelake.faults.end(),
        "can't be used",
        lasts=330.0,
    ),
    Fault(
        "daemon dead",
        lambda site: site.processes.kill(DAEMON),
        lambda site: site.processes.supervise(),
        "",
        is_dead=_daemon_is_dead,
    ),
    Fault(
        "mount away",
        lambda site: site.set_mounted(mounted=False),
        lambda site: site.set_mounted(mounted=True),
        "mounted",
        lasts=330.0,
    ),
    Fault(
        "two thirds of a mount away",
        lambda site: site.lose_most(lost=True),
        lambda site: site.lose_most(lost=False),
        "mounted",
        lasts=330.0,
    ),
    Fault(
        "grant revoked",
        lambda site: site.revoke_grant(revoked=True),
        lambda site: site.revoke_grant(revoked=False),
        "granted",
        lasts=330.0,
    ),
    Fault(
        "receiver down",
        lambda site: site.lake.append_null_key("parcels"),
        lambda site: _delete_null_key(site, "parcels"),
        "key_presence",
        "parcels",
        down_seconds=600.0,
    ),
    # The last one: the clock stays ahead.
    Fault(
        "two days on hold",
        lambda site: site.lake.change_type("bills"),
        lambda site: site.command("rebuild", "shop.bills", "--yes"),
        "bills",
        "bills",
        half_days=4,
    ),
)
