"""What people click, in the order in which they do: each story goes on where the one before it ended."""

from __future__ import annotations

import os
import signal

import pytest

from benchmarks.processes import pythons_of
from mirror_assets.orchestration.check_jobs import ALL_CHECKS, CHECK_OP, CHECKS
from mirror_assets.orchestration.jobs import REBUILD, REPAIR, REPLICATE
from mirror_assets.orchestration.mirror_assets import MIRROR_ALL
from mirror_assets.orchestration.sensors import MIRROR_SENSOR
from mirror_assets.orchestration.translator import AssetKind
from mirror_assets_tests.ui.desk import Desk
from mirror_assets_tests.ui.shop import ORDERS

pytestmark = pytest.mark.ui

# The group's own page: the page of all groups shows each as one box.
_LINEAGE = "/locations/mirror_assets/asset-groups/shop/lineage"


def _backfill(desk: Desk, kind: AssetKind) -> str:
    """Materialize the partitions that an asset of the orders misses, from its page; return the status of the run."""

    def launch() -> None:
        desk.open_asset(kind, ORDERS)
        desk.click("Materialize")
        desk.click("Missing", exact=True)
        desk.click("Launch backfill")

    return desk.run(launch)[1]


def test_a_box_of_the_lineage_names_table_and_stage(desk: Desk) -> None:
    desk.open(_LINEAGE)
    for table in ("orders", "items"):
        for kind in ("source", "changes", "landing", "mirror"):
            desk.sees(f"{table}_{kind}")
    desk.picture("lineage")


def test_a_job_mirrors_all_tables_while_definitions_are_reloaded(desk: Desk) -> None:
    desk.shop.commit()

    def reload() -> None:
        desk.shop.add_prices()
        desk.open("/asset-groups")
        desk.click("Reload definitions")
        desk.open(_LINEAGE)
        desk.sees("prices_landing")

    run, status = desk.run(lambda: desk.click_launch(MIRROR_ALL), reload)
    assert status == "SUCCESS"
    desk.open(f"/runs/{run}?logs=Spark")  # only rows in view are on the page
    desk.sees("Spark has started")
    desk.picture("run")
    desk.open("/overview")
    desk.sees(MIRROR_ALL)


@pytest.mark.parametrize(
    ("kind", "first", "command"),
    [
        (AssetKind.SOURCE, "Source of shop.orders", "mirror-assets plan --table shop.orders"),
        (AssetKind.CHANGES, "Changes of shop.orders", "mirror-assets run --table shop.orders"),
        (AssetKind.LANDING, "Landing files of shop.orders", "mirror-assets status --table shop.orders"),
        (AssetKind.MIRROR, "Mirror of shop.orders", "mirror-assets reconcile --table shop.orders"),
    ],
)
def test_a_page_says_what_it_is_whose_it_is_and_what_to_type(
    desk: Desk, kind: AssetKind, first: str, command: str
) -> None:
    desk.open_asset(kind, ORDERS)
    for text in (first, command, "sales", "domain: shop", "mirror.yaml"):
        desk.sees(text)
    desk.picture(f"page_{kind.value}")


def test_a_landed_slice_is_described_in_a_sentence(desk: Desk) -> None:
    desk.open_asset(AssetKind.LANDING, ORDERS, "events")
    desk.sees("the table at version 1: 10 inserts in 1 file of")
    desk.picture("event")
    desk.open_asset(AssetKind.SOURCE, ORDERS, "partitions")
    desk.sees("Materialized (1)")


def test_a_backfill_lands_slices(desk: Desk) -> None:
    desk.register(*(desk.shop.commit() for _ in range(3)))
    for kind in (AssetKind.CHANGES, AssetKind.LANDING):
        assert _backfill(desk, kind) == "SUCCESS"
    desk.open_asset(AssetKind.LANDING, ORDERS, "partitions")
    desk.sees("Materialized (4)")
    desk.picture("partitions")


def test_a_null_key_stops_a_backfill_and_its_check_says_so(desk: Desk) -> None:
    before, planted, behind = desk.shop.commit(), desk.shop.plant(), desk.shop.commit()
    desk.register(before, planted, behind)
    assert _backfill(desk, AssetKind.CHANGES) == "FAILURE"
    desk.open_asset(AssetKind.CHANGES, ORDERS, "checks")
    desk.click_text("key_presence")
    desk.sees(f"slice {planted}: ")
    desk.picture("failed_check")
    desk.open(_LINEAGE)
    desk.sees("orders_landing")
    desk.picture("lineage_failing")


def test_the_status_of_the_mirror_names_the_table_that_fails(desk: Desk) -> None:
    assert desk.launch(MIRROR_ALL) == "FAILURE"
    assert desk.launch(CHECKS) == "FAILURE", "a new error fails the run, once"
    desk.open("/assets/mirror_status?view=overview")
    desk.sees("Act on shop.orders")
    desk.picture("status_failing")
    assert desk.launch(CHECKS) == "SUCCESS"


def test_a_rebuild_repairs_the_table_and_leaves_nothing_red(desk: Desk) -> None:
    desk.shop.repair()
    config = f"ops: {{rebuild_table: {{config: {{confirm: {ORDERS}}}}}}}"
    assert desk.launch(REBUILD, config, str(ORDERS)) == "SUCCESS"
    desk.open_asset(AssetKind.LANDING, ORDERS, "partitions")
    desk.sees("2.0-8")
    desk.sees("Failed (0)")
    desk.sees("Missing (0)")
    desk.picture("rebuilt")
    assert desk.launch(REPLICATE) == "SUCCESS"
    assert desk.launch(CHECKS) == "SUCCESS"
    desk.open("/assets/mirror_status?view=overview")
    desk.sees("3 up to date")
    desk.picture("status_healed")
    desk.open(_LINEAGE)
    desk.sees("orders_landing")
    desk.picture("lineage_healed")


def test_a_check_is_executed_by_hand(desk: Desk) -> None:
    def launch() -> None:
        desk.open_asset(AssetKind.LANDING, ORDERS, "checks")
        desk.click_text("lag")
        desk.click("Execute", exact=True)

    assert desk.run(launch)[1] == "SUCCESS"
    desk.sees("commits_behind")


def test_the_sensors_page_says_what_it_does(desk: Desk) -> None:
    desk.open(f"/locations/mirror_assets/sensors/{MIRROR_SENSOR}")
    desk.sees("Mirrors 3 tables")
    desk.picture("sensor")


def test_all_checks_are_one_step_and_show_results_on_the_pages_of_tables(desk: Desk) -> None:
    assert desk.launch(REPLICATE) == "SUCCESS"
    assert desk.launch(ALL_CHECKS) == "SUCCESS"
    desk.sees(CHECK_OP)
    assert desk.steps() == [CHECK_OP]
    desk.picture("all_checks")
    desk.open_asset(AssetKind.MIRROR, ORDERS, "checks")
    desk.click_text("reconciled")
    desk.sees("Passed")
    desk.sees("Execution history")
    desk.picture("reconciled")


def test_a_repair_lands_only_the_difference(desk: Desk) -> None:
    desk.shop.damage()
    assert desk.launch(REPAIR, partition=str(ORDERS)) == "SUCCESS"
    desk.open_asset(AssetKind.LANDING, ORDERS)
    desk.sees("the difference to version 8")
    desk.picture("repaired")


def test_a_killed_code_server_is_shown_as_failed_and_restarts_by_a_click(desk: Desk) -> None:
    assert desk.launch(CHECKS) == "SUCCESS"
    (process,) = pythons_of(desk.home.mark, "dagster api grpc")
    os.kill(process, signal.SIGKILL)
    desk.open("/deployment/locations")
    desk.sees("Failed")
    desk.picture("code_server_killed")
    desk.click("Reload", exact=True)
    desk.open(_LINEAGE)
    desk.sees("orders_landing")
    desk.open_asset(AssetKind.LANDING, ORDERS, "checks")
    desk.click_text("lag")
    desk.sees("commits_behind")
