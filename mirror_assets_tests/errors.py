"""Asserting on an error by its row, or by its family and its code, as callers see it."""

from __future__ import annotations

from typing import TypeVar

import pytest

from mirror_assets.errors import Code, ErrorRow, MirrorError

Expected = tuple[type[MirrorError], Code]
_Family = TypeVar("_Family", bound=MirrorError)


def raises(family: type[_Family], code: Code, match: str | None = None) -> pytest.RaisesExc[_Family]:
    """What `pytest.raises` gives, for an error of exactly this family and this code."""

    def is_exact(error: _Family) -> bool:
        return error.code is code and (error.row.raises if error.row else type(error)) is family

    return pytest.raises(family, match=match, check=is_exact)


def raises_row(row: ErrorRow[_Family], match: str | None = None) -> pytest.RaisesExc[_Family]:
    """What `pytest.raises` gives, for the error of exactly this row."""
    return pytest.raises(row.error, match=match)
