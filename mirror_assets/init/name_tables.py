"""Names in the mirror for tables that are found: `<folder>.<table>`, valid and different from each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count

from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName

# What a landing zone's name can't have (landing/names.py), and `%` and `$`, which mirror.yaml takes for more.
_UNFIT = re.compile(r'[\\/:*?"<>|.%$\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+')
_MOST_CHARACTERS, _MOST_BYTES = 100, 100


def name_tables(paths: Iterable[Sequence[str]]) -> list[TableName]:
    """Return a name for each path, of its last two parts.

    Of names that would share a table folder, that of the shortest path stays as it is, and the others get a number.
    """
    taken: set[str] = set()
    listed = list(paths)
    by_depth = sorted(range(len(listed)), key=lambda index: len(listed[index]))
    names = {index: _unique(listed[index], taken) for index in by_depth}
    return [names[index] for index in range(len(listed))]


def _unique(path: Sequence[str], taken: set[str]) -> TableName:
    *above, table = (_fit(part) for part in path[-2:])
    for number in count(1):
        last = table if number == 1 else f"{table}_{number}"
        name = _parsed(".".join((*above, last)))
        if name.folder.casefold() not in taken:
            taken.add(name.folder.casefold())
            return name
    raise AssertionError("numbers don't end")


def _parsed(text: str) -> TableName:
    try:
        return TableName.parse(text)
    except NameRefused as error:
        raise AssertionError(f"{text!r} was made to fit") from error


def _fit(part: str) -> str:
    """Return the part with what a landing zone refuses replaced; a long one keeps enough to be recognized."""
    text = _UNFIT.sub("_", part.strip()).lstrip("_")[:_MOST_CHARACTERS]
    return text.encode()[:_MOST_BYTES].decode(errors="ignore").strip() or "table"
