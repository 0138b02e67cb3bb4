"""Which cases of a proof `make test` runs; the others run in `make soak`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def smoke_first(cases: Sequence[Any], smoke: int = 1) -> list[Any]:
    """Return the cases for `parametrize`, of which all but the first `smoke` are marked `soak`."""
    return [*cases[:smoke], *(_soaked(case) for case in cases[smoke:])]


def _soaked(case: Any) -> object:  # noqa: ANN401 a case may be anything
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.soak)
