"""Names in the mirror for the tables of a lake: `<folder>.<table>`, valid and unique."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count

from mirror_assets.landing.names import TableName

# Refused in a landing zone (landing/names.py), and `%` and `$`, which mirror.yaml takes for escapes and variables.
_UNFIT = re.compile(r'[\\/:*?"<>|.%$\x00-\x1f\x7f-\x9f\ud800-\udfff\s]+')
_LONGEST = 100


def name_tables(paths: Iterable[Sequence[str]]) -> list[TableName]:
    """Return a name for each path, made of its last two parts.

    If several tables would share a folder of the landing zone, all but that of the shortest path get a number.
    """
    taken = set[str]()
    listed = list(paths)
    names = dict[int, TableName]()
    for index in sorted(range(len(listed)), key=lambda index: len(listed[index])):
        *above, table = (_fit(part) for part in listed[index][-2:])
        for number in count(1):
            last = table if number == 1 else f"{table}_{number}"
            name = TableName.parse(".".join((*above, last)))
            if name.folder.casefold() not in taken:
                break
        taken.add(name.folder.casefold())
        names[index] = name
    return [names[index] for index in range(len(listed))]


def _fit(part: str) -> str:
    """Return the part without the characters that a landing zone refuses, at most 100 bytes long."""
    text = _UNFIT.sub("_", part.strip()).lstrip("_")
    return text.encode()[:_LONGEST].decode(errors="ignore").strip() or "table"
