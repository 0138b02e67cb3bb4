"""Slopes of growth: 1 is linear, 0 flat, and 1.5 and more a warning."""

from __future__ import annotations

import pytest

from benchmarks.curve import Curve, GrowthPoint, slope

_SIZES = (100, 200, 400, 800, 1_600)
_MEBI = 1 << 20


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_slope_is_the_power_of_the_size(power: float) -> None:
    assert slope([(size, 3 * size**power) for size in _SIZES]) == pytest.approx(power)


def test_one_size_has_no_slope() -> None:
    assert slope([(10, 1.0), (10, 2.0)]) is None


def _curve(power: float) -> Curve:
    points = [GrowthPoint(size, size**power, size / 100, size * _MEBI) for size in _SIZES]
    return Curve("A plan", "commits", points)


def test_a_square_is_a_warning_with_its_name() -> None:
    assert _curve(1.0).steep() == []
    assert _curve(2.0).steep() == ["warning: A plan: time, s grows with the power 2.00 of commits"]
    assert "warning: A plan" in str(_curve(2.0))


def test_memory_below_the_noise_of_an_allocator_is_flat() -> None:
    points = [GrowthPoint(size, 1.0, 1.0, size * 1_000) for size in _SIZES]
    assert Curve("A plan", "commits", points).slope("python") == pytest.approx(0)


def test_what_no_point_has_is_no_column() -> None:
    head, *points, slopes, last = _curve(1.0).rows()
    assert head == ("commits", "time, s", "CPU, s", "Python added, MiB")
    assert points[0] == ("100", "100.0", "1.0", "100")
    assert slopes == ("slope", "1.00", "1.00", "1.00")
    assert last == ("last step", "1.00", "1.00", "1.00")


def test_a_step_that_a_constant_hides_is_a_warning() -> None:
    points = [GrowthPoint(size, 100 + (size / 400) ** 4, 1.0, 0) for size in _SIZES]
    curve = Curve("A plan", "commits", points)
    assert curve.slope("seconds") == pytest.approx(0.4, abs=0.2)
    assert curve.steep() == ["warning: A plan: time, s grows with the power 1.62 of commits"]
