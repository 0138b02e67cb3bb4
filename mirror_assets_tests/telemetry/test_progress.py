"""The progress of work: what is left, running and done, also of tables that fail."""

from __future__ import annotations

import pytest

from mirror_assets.telemetry.progress import end_work, expect, following_progress, working


def test_pieces_are_left_running_and_done() -> None:
    with following_progress() as work:
        expect("shop.orders", [10, 30])
        orders = work["shop.orders"]
        with working("shop.orders"):
            assert (orders.left, orders.running) == ([30], 10)
        assert (orders.pieces, orders.weight, orders.left) == (1, 10, [30])
        expect("shop.orders", [30, 5])  # planned again: a commit was made meanwhile
        assert (orders.pieces, orders.weight, orders.left) == (1, 10, [30, 5])


def test_what_is_not_planned_yet_is_expected_later() -> None:
    with following_progress() as work:
        expect("shop.orders", [10], later=500)
        assert work["shop.orders"].later == 500
        expect("shop.orders", [20])
        assert work["shop.orders"].later == 0


def test_what_a_failed_table_has_left_is_expected_no_more() -> None:
    with following_progress() as work:
        expect("shop.orders", [10, 30], later=5)
        with pytest.raises(OSError, match="full"), working("shop.orders"):
            raise OSError("full")
        end_work("shop.orders")
        orders = work["shop.orders"]
    assert (orders.left, orders.later, orders.running, orders.weight, orders.has_ended) == ([], 0, 0, 0, True)


def test_nothing_is_recorded_unless_it_is_followed() -> None:
    expect("shop.orders", [1])
    with working("shop.orders"):
        pass
    end_work("shop.orders")
    with following_progress() as work:
        assert work == {}
