"""Every picture shows what its data have, and draws data of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirror_assets.direct_lake.framing import FileSum, FramingEffect, FramingPoint
from mirror_assets.direct_lake.guardrails.capacity_fit import SkuFit, Use, Verdict
from mirror_assets.direct_lake.guardrails.skus import Limit, sku_of
from mirror_assets.direct_lake.log_history import FileLifetime, Maintenance, Mark
from mirror_assets.direct_lake.plots.figure import BAD, CAUTION, CHANGED, DROPPED, GOOD, KEPT, LOADED
from mirror_assets.direct_lake.plots.framing_plots import framing_bars, lifetime_chart
from mirror_assets.direct_lake.plots.guardrail_plots import CapacityLimit, GrowthCurve, growth_chart, headroom_bars
from mirror_assets.direct_lake.plots.histograms import file_size_histogram, row_group_histogram
from mirror_assets_tests.direct_lake.plots.pixels import amount, size

_DAY = 86_400_000
_LIMITS = (Limit.FILES, Limit.ROWS, Limit.MODEL_BYTES)


@pytest.mark.parametrize("amounts", [[], [0, 16_000_000], [1, 2**30, 10**12]])
def test_histograms_have_bars_where_there_is_anything(amounts: Sequence[int]) -> None:
    for picture in (row_group_histogram(amounts, "t"), file_size_histogram(amounts, "t")):
        assert (amount(picture, KEPT) > 500) is bool(amounts)
        assert size(picture) == (960, 540)


@pytest.mark.parametrize(
    ("used", "limit", "colour"), [(700, 1000, GOOD), (900, 1000, CAUTION), (1200, 1000, BAD), (5, 0, BAD)]
)
def test_a_bar_is_coloured_by_how_much_is_left(used: int, limit: int, colour: str) -> None:
    picture = headroom_bars([SkuFit(sku_of("F2"), (Use(Limit.FILES, "t", used, limit, Verdict.FITS),))], "t")
    assert [shade for shade in (GOOD, CAUTION, BAD) if amount(picture, shade) > 500] == [colour]


def test_every_sku_and_measure_has_its_place() -> None:
    fits = [
        SkuFit(sku_of(sku), tuple(Use(limit, "t", 10, allowed, Verdict.FITS) for limit in _LIMITS))
        for sku, allowed in (("F2", 100), ("F64", None))
    ]
    one, three = headroom_bars([replace(fits[0], uses=fits[0].uses[:1])], "t"), headroom_bars(fits, "t")
    assert size(three)[0] > size(one)[0]
    assert amount(three, GOOD) > amount(one, GOOD) > 1000
    assert amount(headroom_bars([], "t"), GOOD) == 0


_HERE, _NONE = FileSum(1, 100, bytes=1000), FileSum()


def _point(
    day: int,
    marks: tuple[Mark, ...] = (),
    *,
    kept: FileSum = _NONE,
    changed: FileSum = _NONE,
    reloaded: FileSum = _NONE,
    dropped: FileSum = _NONE,
) -> FramingPoint:
    return FramingPoint(day * _DAY, FramingEffect(day, day + 1, kept, changed, reloaded, dropped), marks)


@pytest.mark.parametrize(
    ("points", "colours"),
    [
        ([_point(0, kept=_HERE)], [KEPT]),
        ([_point(0, kept=_HERE), _point(1, reloaded=_HERE, dropped=_HERE)], [KEPT, LOADED, DROPPED]),
        ([_point(0, kept=_HERE, changed=_HERE)], [KEPT, CHANGED]),
        ([_point(day, kept=_HERE, reloaded=_HERE) for day in range(300)], [KEPT, LOADED]),
        ([_point(0, kept=FileSum(3, 0, without_rows=3))], []),
        ([], []),
    ],
)
def test_framing_bars_show_each_part_that_has_rows(points: Sequence[FramingPoint], colours: Sequence[str]) -> None:
    picture = framing_bars(points, "t")
    assert [shade for shade in (KEPT, CHANGED, LOADED, DROPPED) if amount(picture, shade) > 1500] == colours


def test_marks_are_on_the_picture() -> None:
    marks = tuple(Mark(1, 0, operation) for operation in Maintenance)
    with_marks, without = framing_bars([_point(0, marks, kept=_HERE)], "t"), framing_bars([_point(0, kept=_HERE)], "t")
    assert amount(with_marks, "#CC79A7") > 20 > amount(without, "#CC79A7")


def _life(added: int | None, removed: int | None, size_: int = 10, changes: tuple[int, ...] = ()) -> FileLifetime:
    return FileLifetime(f"{added}-{removed}-{size_}", size_, added, removed, changes)


@pytest.mark.parametrize(
    ("lives", "colours"),
    [
        ([_life(0, None), _life(1, 4, changes=(2, 3))], [KEPT, CHANGED, DROPPED]),
        ([_life(version // 500, 9, version) for version in range(1000)], [DROPPED]),
        ([_life(0, None, 0)], [KEPT]),
        ([], []),
    ],
)
def test_lifetimes_are_lines_by_what_became_of_the_file(lives: Sequence[FileLifetime], colours: Sequence[str]) -> None:
    picture = lifetime_chart(lives, 0, 10, "t", [Mark(4, 0, Maintenance.OPTIMIZE)])
    assert [shade for shade in (KEPT, CHANGED, DROPPED) if amount(picture, shade) > 60] == colours


_SAMPLES = [(day * _DAY, 100.0 + 10 * day) for day in range(10)]


@pytest.mark.parametrize(
    ("growth", "limit", "days"),
    [
        (GrowthCurve("files", _SAMPLES, 10.0), 1000, 81.0),
        (GrowthCurve("files", _SAMPLES, 10.0), 190, 0.0),
        (GrowthCurve("files", _SAMPLES, 0.0), 1000, None),
        (GrowthCurve("files", _SAMPLES, -5.0), 1000, None),
        (GrowthCurve("files", _SAMPLES, None), 1000, None),
        (GrowthCurve("files", _SAMPLES[:1], 1e-6), 10**12, pytest.approx(1e18)),
    ],
)
def test_growth_is_drawn_towards_the_limit(growth: GrowthCurve, limit: float, days: float | None) -> None:
    assert growth.days_to(CapacityLimit("F2", limit)) == days
    picture = growth_chart(growth, [CapacityLimit("F2", limit), CapacityLimit("F4", limit)], "t")
    assert amount(picture, KEPT) > 50
    assert amount(picture, BAD) > 500


def test_growth_without_samples_or_limits_is_a_picture_too() -> None:
    assert amount(growth_chart(GrowthCurve("files", []), [], "t"), KEPT) == 0
    assert amount(growth_chart(GrowthCurve("files", _SAMPLES), [], "t"), KEPT) > 50
