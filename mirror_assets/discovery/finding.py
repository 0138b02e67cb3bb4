"""What was found at a place: folders, what each was when it was read, and what a later look changes in that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# A table that one listing does not have may be in the middle of being replaced.
_GONE_AFTER_LISTINGS = 2
_NAMED = 3
_READ_AGAIN_AT_LATEST_SECONDS = 3600.0


class FolderKind(str, Enum):
    """What a folder is; `unread` before it was read, `unlisted` if its folders can't be listed."""

    TABLE = "table"
    NOT_A_TABLE = "not a table"
    UNREADABLE = "unreadable"
    UNLISTED = "unlisted"
    UNREAD = "unread"


def _below(path: str) -> str:
    if not path or path.startswith("/") or any(name in ("", ".", "..") for name in path.split("/")):
        raise ValueError(f"{path!r} is no path below a root")
    return path


Below = Annotated[str, AfterValidator(_below)]


class FolderFacts(BaseModel):
    """What a folder was when it was read. `why` says why it can't be; the rest is a table's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FolderKind = FolderKind.UNREAD
    why: str = ""
    table_id: str = ""
    feed: bool = False
    row_tracking: bool = False
    columns: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether it is one. It need not be read again: the run that mirrors it sees its changes."""
        return self.kind is FolderKind.TABLE


class FoundFolder(BaseModel):
    """A folder by its path below the root; times are in seconds since 1970.

    `missing` counts the newest listings that did not have it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Below
    facts: FolderFacts = FolderFacts()
    first_seen: float = Field(ge=0, allow_inf_nan=False)
    read_at: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    missing: int = Field(default=0, ge=0)

    @property
    def name(self) -> str:
        """The folder's own name."""
        return self.path.rpartition("/")[2]

    def is_due(self, now: float) -> bool:
        """Return whether to read it now, if it is no table.

        It may become one: it is read again when it has been known for twice as long, at the latest after an hour.
        """
        if self.facts.kind is FolderKind.UNREAD:
            return True
        waits = min(max(self.read_at - self.first_seen, 0.0), _READ_AGAIN_AT_LATEST_SECONDS)
        return now - self.read_at >= waits


class PlaceFinding(BaseModel):
    """The folders of a place by path, ascending, and when they were listed (seconds since 1970; 0 if never).

    `trouble` says why the newest look changed nothing, if so: it was refused, or too many tables were not listed.
    `code` is that of the error, if it was refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str
    listed_at: float = Field(ge=0, allow_inf_nan=False)
    folders: tuple[FoundFolder, ...] = ()
    trouble: str = ""
    code: str | None = None

    def to_read(self, wanted: Collection[str], now: float, *, all_others: bool = False) -> tuple[str, ...]:
        """Return the paths of the wanted folders to read now.

        Tables are not read again. With `all_others`, all others are, however lately they were.
        """
        others = (x for x in self.folders if x.facts.kind not in (FolderKind.TABLE, FolderKind.UNLISTED))
        return tuple(x.path for x in others if x.path in wanted and (all_others or x.is_due(now)))

    def with_facts(self, read: Mapping[str, FolderFacts], now: float) -> PlaceFinding:
        """Return the finding with what was read just now."""
        folders = (
            folder.model_copy(update={"facts": read[folder.path], "read_at": now}) if folder.path in read else folder
            for folder in self.folders
        )
        return self.model_copy(update={"folders": tuple(folders)})


def behind_listing(
    place: str,
    paths: Iterable[str],
    unlisted: Mapping[str, str],
    before: PlaceFinding | None,
    now: float,
    *,
    accepts_loss: bool = False,
) -> PlaceFinding:
    """Return the finding behind a listing of these paths. What was known of a folder stays known.

    A table that the listing does not have is kept until the next one, and then removed. But a share that is not mounted
    and a grant that was revoked look like an empty place: the loss of more than half of the tables changes nothing,
    unless a person `accepts_loss`. Below a folder that can't be listed (`unlisted` says why), everything stays as it
    was.
    """
    known = {folder.path: folder for folder in before.folders} if before else {}
    tables = [path for path, folder in known.items() if folder.facts.is_table]
    found = {path: _seen(known.get(path), path, now) for path in paths}
    for path, why in unlisted.items():
        facts = FolderFacts(kind=FolderKind.UNLISTED, why=why)
        found[path] = FoundFolder(path=path, facts=facts, first_seen=now, read_at=now)
    hidden = {path for path in known if any(path.startswith(f"{folder}/") for folder in unlisted)}
    found |= {path: known[path] for path in hidden - found.keys()}
    lost = [path for path in tables if path not in found]
    is_suspicious = len(lost) * 2 > len(tables) and not accepts_loss
    gone = 1 if accepts_loss else _GONE_AFTER_LISTINGS
    trouble = ""
    for path in lost:
        missing = known[path].missing + 1
        if is_suspicious or missing < gone:
            found[path] = known[path].model_copy(update={"missing": missing})
        if is_suspicious and missing >= gone:
            trouble = (
                f"{len(lost)} of {len(tables)} tables are not listed any more ({_some(lost)}): they are mirrored as "
                "before. Next: see whether the place is mounted, and can be listed from here; if they are gone for "
                "good, run `mirror-assets discover --accept`."
            )
    folders = tuple(found[path] for path in sorted(found))
    return PlaceFinding(place=place, listed_at=now, folders=folders, trouble=trouble)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(sorted(paths)[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def _seen(known: FoundFolder | None, path: str, now: float) -> FoundFolder:
    if known is None:
        return FoundFolder(path=path, first_seen=now)
    return known.model_copy(update={"missing": 0}) if known.missing else known
