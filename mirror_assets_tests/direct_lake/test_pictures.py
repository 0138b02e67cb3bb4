"""Each picture shows what its data have, and draws data of any shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mirror_assets.direct_lake.framing import FileSum, FramingEffect, FramingPoint
from mirror_assets.direct_lake.guardrails import (
    CapacityFit,
    FitVerdict,
    GuardrailFigures,
    Limit,
    LimitUse,
    SkuFit,
    sku_of,
)
from mirror_assets.direct_lake.pictures import framing_bars, use_of_limits
from mirror_assets_tests.direct_lake.pixels import amount, size

_GOOD, _CAUTION, _BAD = "#009E73", "#E69F00", "#D55E00"
_KEPT, _CHANGED, _LOADED, _DROPPED = "#0072B2", "#E69F00", "#D55E00", "#8E9BB3"
_FIGURES = GuardrailFigures("t", 1, 1, 1, 0, 1)
_DAY = 86_400_000
_LIMITS = (Limit.FILES, Limit.ROWS, Limit.MODEL_BYTES)


@pytest.mark.parametrize(("used", "colour"), [(700, _GOOD), (900, _CAUTION), (1200, _BAD)])
def test_a_bar_is_coloured_by_how_much_is_left(used: int, colour: str) -> None:
    use = LimitUse(Limit.FILES, "t", used, 1000, FitVerdict.FITS)
    picture = use_of_limits(CapacityFit(_FIGURES, (SkuFit(sku_of("F2"), (use,)),)))
    assert [shade for shade in (_GOOD, _CAUTION, _BAD) if amount(picture, shade) > 500] == [colour]


def test_every_sku_and_limit_has_its_place() -> None:
    fits = tuple(
        SkuFit(sku_of(sku), tuple(LimitUse(limit, "t", 10, allowed, FitVerdict.FITS) for limit in _LIMITS))
        for sku, allowed in (("F2", 100), ("F64", None))
    )
    one = use_of_limits(CapacityFit(_FIGURES, (replace(fits[0], uses=fits[0].uses[:1]),)))
    three = use_of_limits(CapacityFit(_FIGURES, fits))
    assert size(three)[0] > size(one)[0]
    assert amount(three, _GOOD) > amount(one, _GOOD) > 1000


_HERE, _NONE = FileSum(1, 100, bytes=1000), FileSum()


def _point(
    day: int,
    maintenance: tuple[str, ...] = (),
    *,
    kept: FileSum = _NONE,
    changed: FileSum = _NONE,
    reloaded: FileSum = _NONE,
    dropped: FileSum = _NONE,
) -> FramingPoint:
    return FramingPoint(day * _DAY, FramingEffect(day, day + 1, kept, changed, reloaded, dropped), maintenance)


@pytest.mark.parametrize(
    ("points", "colours"),
    [
        ([_point(0, kept=_HERE)], [_KEPT]),
        ([_point(0, kept=_HERE), _point(1, reloaded=_HERE, dropped=_HERE)], [_KEPT, _LOADED, _DROPPED]),
        ([_point(0, kept=_HERE, changed=_HERE)], [_KEPT, _CHANGED]),
        ([_point(day, kept=_HERE, reloaded=_HERE) for day in range(300)], [_KEPT, _LOADED]),
        ([_point(0, kept=FileSum(3, 0, without_rows=3))], []),
        ([], []),
    ],
)
def test_framing_bars_show_each_part_that_has_rows(points: Sequence[FramingPoint], colours: Sequence[str]) -> None:
    picture = framing_bars(points, "t")
    assert [shade for shade in (_KEPT, _CHANGED, _LOADED, _DROPPED) if amount(picture, shade) > 1500] == colours


def test_maintenance_is_named_on_the_picture() -> None:
    with_names = framing_bars([_point(0, ("OPTIMIZE", "VACUUM"), kept=_HERE)], "t")
    assert with_names != framing_bars([_point(0, kept=_HERE)], "t")
