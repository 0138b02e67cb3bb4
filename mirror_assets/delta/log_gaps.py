"""Which commit is missing where a version can't be put together, by the names in the log's folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

_COMMIT = re.compile(r"(\d{20})\.json")
# Also one that is not whole, or can't be read: then no commit is what is missing.
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\..+")


def missing_commit(names: Iterable[str], version: int) -> int | None:
    """The newest commit without which the version can't be put together; None if nothing is missing by these names.

    A version is put together from the newest checkpoint up to it, or from the beginning, and every commit since
    (Delta's protocol, "Delta Log Entries" and "Checkpoints").
    """
    listed = list(names)
    commits = {int(match[1]) for name in listed if (match := _COMMIT.fullmatch(name))}
    checkpoints = {int(match[1]) for name in listed if (match := _CHECKPOINT.fullmatch(name))}
    since = max((at for at in checkpoints if at <= version), default=-1)
    return next((commit for commit in range(version, since, -1) if commit not in commits), None)
