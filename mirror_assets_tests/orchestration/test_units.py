from __future__ import annotations

import pytest

from mirror_assets.orchestration.units import count, duration, joined, size


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (16 << 30, "17.2 GB")],
)
def test_bytes_have_the_unit_that_leaves_few_digits(number: int, text: str) -> None:
    assert size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (4.24, "4.2 s"),
        (9.96, "10 s"),
        (59, "59 s"),
        (60, "1 min"),
        (901, "15 min 1 s"),
        (5400, "1 h 30 min"),
        (3601, "1 h"),
        (200_000, "2 d 7 h"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_noun_follows_its_number() -> None:
    assert [count(number, "file") for number in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]


def test_five_messages_are_shown_and_the_others_counted() -> None:
    assert joined(["a", "b"]) == "a; b"
    assert joined(list("abcdefg")) == "a; b; c; d; e; and 2 more"
