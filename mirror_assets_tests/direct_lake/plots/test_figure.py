"""What all pictures share."""

from __future__ import annotations

import sys

import pytest
from matplotlib.figure import Figure

from mirror_assets.direct_lake.errors import PlotsMissing
from mirror_assets.direct_lake.plots import histograms
from mirror_assets.direct_lake.plots.figure import counted, sized
from mirror_assets.direct_lake.plots.histograms import row_group_histogram
from mirror_assets.direct_lake.table_layout import FILE_BINS, MB, Histogram
from mirror_assets.errors import ErrorCode


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0, "0"), (950, "950"), (1_000, "1 k"), (1_234, "1.23 k"), (999_900, "1 M"), (24e9, "24 B"), (-1_500, "-1.5 k")],
)
def test_numbers_are_written_in_few_signs(amount: float, written: str) -> None:
    assert counted(amount) == written


@pytest.mark.parametrize(
    ("amount", "written"),
    [(0, "0 B"), (900, "900 B"), (1_000, "1 kB"), (25_000_000, "25 MB"), (10**10, "10 GB"), (10**12, "1 TB")],
)
def test_bytes_are_written_in_few_signs(amount: float, written: str) -> None:
    assert sized(amount) == written


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PlotsMissing, match=r"mirror-assets\[plots\]") as caught:
        row_group_histogram([1], "t")
    assert caught.value.code is ErrorCode.PLOTS_MISSING


def test_the_same_data_give_the_same_picture() -> None:
    assert row_group_histogram([5, 10**6], "t") == row_group_histogram([5, 10**6], "t")
    assert row_group_histogram([5, 10**6], "t") != row_group_histogram([5, 10**7], "t")


def test_a_picture_calls_small_what_the_report_does(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(histograms, "png", figures.append)
    sizes = [10, 24_999_999, 25_000_000, 26_000_000]
    histograms.file_size_histogram(sizes, "t")
    small = Histogram.of(sizes, FILE_BINS).below(25 * MB).count
    assert figures[0].axes[0].get_title().endswith(f"{small} small")
    legend = [text.get_text() for text in figures[0].legends[0].get_texts()]
    assert legend == ["aimed at: 400 MB to 1 GB", "small: below 25 MB"]


def test_dollars_in_a_name_are_no_formula() -> None:
    assert row_group_histogram([1], "a$_$b") != row_group_histogram([1], "a_b")
    assert row_group_histogram([1], "$b$") != row_group_histogram([1], "b")
