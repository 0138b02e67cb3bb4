"""Two parts, or two rows of a key, in each other's place: seen if a replay of the files would give something else."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from mirror_assets.markers import Marker
from mirror_assets_tests import figures
from mirror_assets_tests.verify.swapped import Changes, Slice, problems, random_changes

_COMMITS = 12


def _random_slice(seed: int, most_rows: int) -> Slice:
    """Few or many keys, values and parts; a part may be empty, and hold several commits or a share of one."""
    draw = np.random.default_rng(seed)
    rows = int(np.exp(draw.uniform(np.log(4), np.log(most_rows))))
    keys = int(np.exp(draw.uniform(0, np.log(rows + 1))))
    deletes, differing = draw.choice([0.0, 0.1, 0.5]), draw.choice([1.0, 1.0, 0.3, 3 / rows])
    changes = random_changes(draw, rows, keys, int(draw.integers(2, _COMMITS)), deletes, differing)
    bounds = np.sort(np.append(draw.integers(0, len(changes) + 1, int(draw.integers(1, 40))), len(changes)))
    return Slice.cut(changes, bounds)


def _try(seed: int, most_rows: int, folder: Path) -> int:
    """Exchange two parts, then two rows of a key, and return how many of both matter; those are seen."""
    slice_ = _random_slice(seed, most_rows)
    draw = np.random.default_rng(seed)
    if draw.random() < 0.1:
        assert problems(slice_, folder / "right", _COMMITS) == "", f"seed {seed}"
    one, other = draw.choice(len(slice_.sizes), 2, replace=False).tolist()
    wrong = [slice_.with_parts_exchanged(one, other)]
    of_key = np.flatnonzero(slice_.changes.key == draw.choice(slice_.changes.key))
    if len(of_key) > 1:
        wrong.append(slice_.with_rows_exchanged(*draw.choice(of_key, 2, replace=False)))
    mattering = [found for found in wrong if found.found().replayed() != slice_.found().replayed()]
    for number, found in enumerate(mattering):
        assert problems(found, folder / str(number), _COMMITS) != "", f"seed {seed}: exchange {number}"
    shutil.rmtree(folder, ignore_errors=True)
    return len(mattering)


def test_exchanges_that_matter_are_seen(tmp_path: Path) -> None:
    mattered = [_try(seed, 2_000 if seed % 4 else 40_000, tmp_path / "slice") for seed in range(100)]
    figures.report("exchanged parts or rows", "slices", len(mattered))
    figures.report("exchanged parts or rows", "mattered, and seen", sum(mattered))
    assert sum(mattered) > 60


def test_one_key_among_many_whose_changes_differ_is_enough(tmp_path: Path) -> None:
    keys = np.arange(30_000)
    value = np.ones(60_000, np.int64)
    value[30_000 + 12_345] = 7
    both = Changes(np.tile(keys, 2), np.repeat([1, 2], 30_000), np.full(60_000, int(Marker.UPDATE)), value)
    slice_ = Slice.cut(both, np.array([30_000, 60_000]))
    assert problems(slice_, tmp_path / "right", _COMMITS) == ""
    assert "key «id=12345»" in problems(slice_.with_parts_exchanged(0, 1), tmp_path / "wrong", _COMMITS)


@pytest.mark.soak
def test_exchanges_in_slices_of_up_to_20_million_rows_are_seen(tmp_path: Path) -> None:
    sizes = [2_000] * 900 + [200_000] * 90 + [20_000_000] * 10
    mattered = [_try(seed, most, tmp_path / "slice") for seed, most in enumerate(sizes)]
    figures.report("exchanged parts or rows, up to 20 million rows", "slices", len(mattered))
    figures.report("exchanged parts or rows, up to 20 million rows", "mattered, and seen", sum(mattered))
