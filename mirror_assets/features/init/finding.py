"""The folders found at a place, the facts read from each, and how the next scan changes both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from mirror_assets.errors import ErrorCode, MirrorError, RetryError
from mirror_assets.features.init.listing import Listing
from mirror_assets.lakes.access import Access, Located, PlainAccess
from mirror_assets.source.actions import Metadata
from mirror_assets.source.delta_rs import newest_metadata
from mirror_assets.source.errors import SourceNotDelta
from mirror_assets.source.log import DeltaLog

# Threads that read logs; for a store, they mostly wait.
_THREADS = 16
# A scan is repeated soon. deltalake holds Python's lock while it lists HDFS, and Dagster ends a code server that does
# not respond for half a minute.
_SHORT = {"timeout": "10s", "max_retries": "1", "retry_timeout": "10s"}


@dataclass(frozen=True)
class Place:
    """A place that can be listed, and the meaning of the paths found there.

    `name` is a stable text, the key of its finding. `label` is the place's own name: the first part of the paths that
    patterns match. `address` returns the address of a path, and raises ValueError for a path without one. `locate`
    returns the location of an address. `listing` raises SettingError for a place that can't be read, and RetryError for
    one that does not respond.
    """

    name: str
    label: str
    address: Callable[[str], str]
    locate: Callable[[str], Located]
    listing: Callable[[], Listing]

    def read(self, paths: Sequence[str]) -> dict[str, FolderFacts]:
        """Return the facts of these paths, except those whose store or catalog does not respond."""
        with ThreadPoolExecutor(_THREADS) as pool:
            facts = zip(paths, pool.map(self._facts, paths), strict=True)
            return {path: found for path, found in facts if found is not None}

    def _facts(self, path: str) -> FolderFacts | None:
        try:
            table = _metadata(self.locate(self.address(path)))
        except RetryError:
            return None
        except SourceNotDelta:
            return FolderFacts(kind=FolderKind.NOT_A_TABLE, why="it has no commits in `_delta_log`")
        except MirrorError as error:
            # Catalogs report views and tables of other formats with this code.
            kind = FolderKind.NOT_A_TABLE if error.code is ErrorCode.SOURCE_NOT_DELTA else FolderKind.UNREADABLE
            return FolderFacts(kind=kind, why=error.what)
        except ValueError as error:
            return FolderFacts(kind=FolderKind.UNREADABLE, why=str(error))
        return FolderFacts(
            kind=FolderKind.TABLE,
            table_id=table.table_id,
            feed=table.feed_enabled,
            row_tracking=table.row_tracking,
            columns=table.columns,
        )


def _metadata(place: Located) -> Metadata:
    """Return the table's newest metadata: by delta-rs, which can't know the commits of a catalog, or by a replay."""
    if place.commits is None:
        return newest_metadata(brief_access(place.access))
    return DeltaLog.at(place).state().metadata


def brief_access(access: Access) -> Access:
    """Return the access with short timeouts and the credentials that are valid now. Raises SettingError without any."""
    options = access.storage_options()
    return PlainAccess(access.uri, {**_SHORT, **options} if options else options)


# A table that one listing does not have may be in the middle of being replaced.
_LISTINGS = 2
_NAMED = 3
_READ_AGAIN_AT_LATEST_SECONDS = 3600.0


class FolderKind(str, Enum):
    """The kind of a folder: `unread` before it was read, `unlisted` if its folders can't be listed."""

    TABLE = "table"
    NOT_A_TABLE = "not a table"
    UNREADABLE = "unreadable"
    UNLISTED = "unlisted"
    UNREAD = "unread"


def _below(path: str) -> str:
    if not path or path.startswith("/") or any(name in ("", ".", "..") for name in path.split("/")):
        raise ValueError(f"{path!r} is not a path below a root")
    return path


class FolderFacts(BaseModel):
    """The facts read from a folder. `why` is the reason why it can't be mirrored; the other fields are a table's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FolderKind = FolderKind.UNREAD
    why: str = ""
    table_id: str = ""
    feed: bool = False
    row_tracking: bool = False
    columns: tuple[str, ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether it is a table. Tables aren't read again: the run that mirrors one detects its changes."""
        return self.kind is FolderKind.TABLE


class FoundFolder(BaseModel):
    """A folder by its path below the root; times are in seconds since 1970.

    `missing` counts the latest listings of its parent without it. `unconfirmed` counts, up to two, the latest listings
    that lack it and do not prove its deletion.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Annotated[str, AfterValidator(_below)]
    facts: FolderFacts = FolderFacts()
    first_seen: float = Field(ge=0, allow_inf_nan=False)
    read_at: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    missing: int = Field(default=0, ge=0)
    unconfirmed: int = Field(default=0, ge=0)

    def is_due(self, now: float) -> bool:
        """Return whether to read it now, if it is not a table.

        It may become one: it is read again when it has been known for twice as long, after an hour at the latest.
        """
        if self.facts.kind is FolderKind.UNREAD:
            return True
        waits = min(max(self.read_at - self.first_seen, 0.0), _READ_AGAIN_AT_LATEST_SECONDS)
        return now - self.read_at >= waits


class PlaceFinding(BaseModel):
    """The folders of a place by path, ascending, and when they were listed (seconds since 1970; 0 if never).

    `trouble` is the reason why the latest scan changed nothing, and `code` its error code if the listing failed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    place: str
    listed_at: float = Field(ge=0, allow_inf_nan=False)
    folders: tuple[FoundFolder, ...] = ()
    trouble: str = ""
    code: str | None = None

    def to_read(
        self, now: float, wanted: Callable[[str], bool] = lambda _: True, *, all_others: bool = False
    ) -> tuple[str, ...]:
        """Return the paths of the wanted folders to read now: not those of tables, and those of others when due.

        With `all_others`, all others are due.
        """
        others = (x for x in self.folders if x.facts.kind not in (FolderKind.TABLE, FolderKind.UNLISTED))
        return tuple(x.path for x in others if wanted(x.path) and (all_others or x.is_due(now)))

    def differs_from(self, before: PlaceFinding | None) -> bool:
        """Return whether it has another content than `before`. Messages with the same error code count as equal."""
        if before is None or (before.listed_at == 0 and self.listed_at > 0):
            return True
        has_same_error = self.code is not None and self.code == before.code
        trouble = before.trouble if has_same_error else self.trouble
        return self.model_copy(update={"listed_at": before.listed_at, "trouble": trouble}) != before

    def with_facts(self, read: Mapping[str, FolderFacts], now: float) -> PlaceFinding:
        """Return the finding with the facts that were read now."""
        folders = tuple(
            folder.model_copy(update={"facts": read[folder.path], "read_at": now}) if folder.path in read else folder
            for folder in self.folders
        )
        return self.model_copy(update={"folders": folders})


def scan(
    place: Place,
    before: PlaceFinding | None,
    now: float,
    wanted: Callable[[str], bool] = lambda _: True,
    *,
    all_others: bool = False,
    accepts_loss: bool = False,
) -> PlaceFinding:
    """List the place and read the wanted folders that are due; `all_others` are those that are not tables.

    With `accepts_loss`, all tables that are not listed are removed. Raises what `Place.listing` raises.
    """
    finding = after_listing(place.name, place.listing(), before, now, accepts_loss=accepts_loss)
    return finding.with_facts(place.read(finding.to_read(now, wanted, all_others=all_others)), now)


def after_listing(
    place: str, listing: Listing, before: PlaceFinding | None, now: float, *, accepts_loss: bool = False
) -> PlaceFinding:
    """Return the finding after a listing. Known facts of a folder are preserved.

    A table remains until two listings of its parent lack it. Two kinds of listings prove no deletion: one without the
    parent, and one that lacks more than half of the tables, because an unmounted share and a revoked grant look like an
    empty place. Then the tables remain until a person `accepts_loss`. Nothing changes below a folder that can't be
    listed.
    """
    known = {folder.path: folder for folder in before.folders} if before else {}
    tables = [path for path, folder in known.items() if folder.facts.is_table]
    found = _listed(listing, known, now)
    lost = [path for path in tables if path not in found]
    is_suspicious = len(lost) * 2 > len(tables)
    for path in () if accepts_loss else lost:
        folder = known[path]
        if is_suspicious or path.rpartition("/")[0] not in listing.parents:
            found[path] = folder.model_copy(
                update={"missing": 0, "unconfirmed": min(folder.unconfirmed + 1, _LISTINGS)}
            )
        elif folder.missing + 1 < _LISTINGS:
            found[path] = folder.model_copy(update={"missing": folder.missing + 1, "unconfirmed": 0})
    retained = [path for path in lost if path in found and found[path].unconfirmed == _LISTINGS]
    named = ", ".join(sorted(retained)[:_NAMED]) + (", …" if len(retained) > _NAMED else "")
    trouble = (
        f"{len(retained)} of {len(tables)} tables are no longer listed ({named}): they are mirrored as "
        "before. Next: check whether the place is mounted and can be listed from here. If the tables were deleted, run "
        "`mirror-assets discover --accept`."
    )
    folders = tuple(found[path] for path in sorted(found))
    return PlaceFinding(place=place, listed_at=now, folders=folders, trouble=trouble if retained else "")


def _listed(listing: Listing, known: Mapping[str, FoundFolder], now: float) -> dict[str, FoundFolder]:
    """Return the folders that the listing has, those that it can't list, and the known ones below the latter."""
    found = dict[str, FoundFolder]()
    for path in listing.paths:
        folder = known.get(path) or FoundFolder(path=path, first_seen=now)
        is_back = folder.missing or folder.unconfirmed
        found[path] = folder.model_copy(update={"missing": 0, "unconfirmed": 0}) if is_back else folder
    for path, why in listing.unlisted.items():
        facts, before = FolderFacts(kind=FolderKind.UNLISTED, why=why), known.get(path)
        if before is not None and before.facts == facts:
            found[path] = before
        else:
            found[path] = FoundFolder(path=path, facts=facts, first_seen=now, read_at=now)
    hidden = {path for path in known if any(path.startswith(f"{folder}/") for folder in listing.unlisted)}
    return {path: known[path] for path in hidden} | found
