"""Decides which of the found folders are tables of the configuration, and says why the others are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import PurePosixPath
from typing import Protocol

from mirror_assets.config.discover_rule import DEFAULT_KEYS, DiscoverRule
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableConfig, TableDefaults
from mirror_assets.discovery.finder import RulePlace
from mirror_assets.discovery.finding import FolderFacts, FolderKind, FoundFolder, PlaceFinding
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName


class FoundState(str, Enum):
    """What becomes of a found folder; the first two are tables of the configuration."""

    MIRRORED = "mirrored"
    NEW = "new"
    HELD = "held"
    EXCLUDED = "excluded"
    NAMED = "named"
    NO_KEYS = "no keys"
    FEED_OFF = "feed off"
    ROW_TRACKING_OFF = "row tracking off"
    NOT_A_TABLE = "not a table"
    UNREADABLE = "unreadable"
    UNREAD = "not read yet"
    NAME_REFUSED = "name refused"
    NAME_TAKEN = "name taken"

    @property
    def is_mirrored(self) -> bool:
        """Whether it is a table of the configuration."""
        return self in (FoundState.MIRRORED, FoundState.NEW)


@dataclass(frozen=True)
class DiscoveredTable:
    """A folder that a rule (from 0) has found: its name in the mirror, its address, and what becomes of it.

    `reason` says why it is not mirrored, and what to do about it.
    """

    name: str
    address: str
    rule: int
    state: FoundState
    reason: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class RuleOutcome:
    """What a rule (from 0) has found at its place, in numbers.

    `trouble` says why the newest look changed nothing, if so; `code` is that of the error, if it was refused.
    `unused_keys` are the names in its `keys` that no found folder has.
    """

    rule: int
    place: str
    folders: int = 0
    tables: int = 0
    mirrored: int = 0
    trouble: str = ""
    unused_keys: tuple[str, ...] = ()
    code: str | None = None

    @property
    def is_well(self) -> bool:
        """Whether it could look, and has found tables, mirrored or not."""
        return not self.trouble and self.tables > 0


@dataclass(frozen=True)
class Discovered:
    """All that the rules of a configuration have found."""

    tables: tuple[DiscoveredTable, ...] = ()
    rules: tuple[RuleOutcome, ...] = ()


@dataclass(frozen=True)
class RuleFinding:
    """A rule by its number, its place, and what is known of the place: None before its first scan."""

    rule: int
    settings: DiscoverRule
    place: str
    finding: PlaceFinding | None


class Surroundings(Protocol):
    """What the rest of the configuration says about found folders."""

    @property
    def defaults(self) -> TableDefaults:
        """The settings of every table."""
        ...

    @property
    def named(self) -> dict[str, str]:
        """The addresses of the tables that are written in the file, by name."""
        ...

    def place(self, rule: DiscoverRule) -> RulePlace:
        """Return where the rule looks."""
        ...

    def lies_at(self, address: str) -> str:
        """Return where a table lies, as far as that is known: a table of a catalog may be in a folder that is found."""
        ...

    def own_place(self, address: str) -> str | None:
        """Return what this project itself keeps at the address, or None."""
        ...


def decide(around: Surroundings, findings: Sequence[RuleFinding]) -> tuple[Discovered, dict[str, TableConfig]]:
    """Return what becomes of every found folder, and the settings of those that are mirrored, by name.

    What is written in the file has precedence, then the rule that stands first. Two folders of one name are both left
    out: which of them a mirror has may not depend on which is found first.
    """
    found = [table for one in findings if one.finding for table in _folders(around, one, one.finding)]
    tables = tuple(_apart(around, found))
    rules = {one.rule: one.settings for one in findings}
    settings = {row.name: _table(rules[row.rule], path, row.keys) for row, path in tables if row.state.is_mirrored}
    rows = tuple(row for row, _ in tables)
    return Discovered(rows, tuple(_outcome(one, rows) for one in findings)), settings


_Row = tuple[DiscoveredTable, str]


def _folders(around: Surroundings, one: RuleFinding, finding: PlaceFinding) -> Iterator[_Row]:
    """Yield what each folder is by itself, and its path below the root."""
    place = around.place(one.settings)
    for folder in finding.folders:
        path = place.whole_path(folder.path)
        try:
            address = place.address(folder.path)
        except ValueError as error:
            yield DiscoveredTable(path.name, folder.path, one.rule, FoundState.NAME_REFUSED, str(error)), folder.path
            continue
        state = FoundState.NEW if folder.first_seen >= finding.listed_at else FoundState.MIRRORED
        row = DiscoveredTable(one.settings.name(path), address, one.rule, state)
        yield _judged(around, one.settings, row, folder, path), folder.path


def _judged(
    around: Surroundings, rule: DiscoverRule, row: DiscoveredTable, folder: FoundFolder, path: PurePosixPath
) -> DiscoveredTable:
    """Return the row as it is if nothing keeps the table from being mirrored, or else with what does."""
    own = around.own_place(row.address)
    if rule.excludes(path) or own:
        return replace(
            row, state=FoundState.EXCLUDED, reason=f"it lies in {own}" if own else "`exclude` matches its path"
        )
    known = {
        FolderKind.UNREAD: (FoundState.UNREAD, "the next look reads it"),
        FolderKind.NOT_A_TABLE: (FoundState.NOT_A_TABLE, folder.facts.why),
        FolderKind.UNREADABLE: (FoundState.UNREADABLE, folder.facts.why),
        FolderKind.UNLISTED: (FoundState.UNREADABLE, folder.facts.why),
    }.get(folder.facts.kind)
    if known is not None:
        return replace(row, state=known[0], reason=known[1])
    refused = _name_refused(row.name, path.name)
    if refused:
        return replace(row, state=FoundState.NAME_REFUSED, reason=refused)
    row = replace(row, keys=_keys(around, rule, row.name))
    own_changes = "changes" in rule.settings.model_fields_set
    unfit = _unfit(rule.settings.changes if own_changes else around.defaults.changes, row, folder.facts)
    if unfit is not None:
        return replace(row, state=unfit[0], reason=unfit[1])
    if rule.holds(path):
        approve = f"approve it: add {path.parent.name}/{path.name} to `approved`, or write it under `tables`"
        return replace(row, state=FoundState.HELD, reason=approve)
    return row


def _name_refused(name: str, folder: str) -> str | None:
    try:
        return None if TableName.parse(name).table == folder else f"a name can't have the dot of the folder {folder!r}"
    except NameRefused as error:
        return error.what


def _keys(around: Surroundings, rule: DiscoverRule, name: str) -> tuple[str, ...]:
    keys = rule.keys_of(name)
    return around.defaults.keys if keys is None else keys


def _unfit(changes: Changes, row: DiscoveredTable, facts: FolderFacts) -> tuple[FoundState, str] | None:
    """Return why the table can't be mirrored with its keys and this way to find changes, or None."""
    missing = [key for key in row.keys if key not in facts.columns]
    table = row.name.rpartition(".")[2]
    if missing:
        why = f"the table has no column {', '.join(map(repr, missing))}; write its keys as `keys: {{{table}: […]}}`"
        return FoundState.NO_KEYS, why
    if changes is Changes.FEED and not row.keys:
        return FoundState.NO_KEYS, f"write its keys as `keys: {{{table}: […]}}`, or those of all as `default`"
    if changes is Changes.FEED and not facts.feed:
        return FoundState.FEED_OFF, "set delta.enableChangeDataFeed = true at the source, or another `changes`"
    if changes is Changes.ROW_TRACKING and not facts.row_tracking:
        why = "set delta.enableRowTracking = true at the source, which upgrades its protocol, or another `changes`"
        return FoundState.ROW_TRACKING_OFF, why
    return None


def _apart(around: Surroundings, found: Iterable[_Row]) -> Iterator[_Row]:
    """Yield the rows; of those in one place, only the first rule's; those with a name that is taken are marked."""
    rows: dict[str, _Row] = {}
    for row, path in found:
        rows.setdefault(around.lies_at(row.address), (row, path))
    by_place = {around.lies_at(address): name for name, address in around.named.items()}
    names = {TableName.parse(name).folder.casefold(): name for name in around.named}
    same: defaultdict[str, list[str]] = defaultdict(list)
    for place, (row, _) in rows.items():
        if _is_candidate(row) and place not in by_place:
            same[TableName.parse(row.name).folder.casefold()].append(row.address)
    for place, (row, path) in rows.items():
        yield _named_apart(row, by_place.get(place), names, same), path


def _named_apart(
    row: DiscoveredTable, named: str | None, names: dict[str, str], same: dict[str, list[str]]
) -> DiscoveredTable:
    if named is not None:
        return replace(row, name=named, state=FoundState.NAMED, reason="it stands under `tables`")
    if not _is_candidate(row):
        return row
    folder = TableName.parse(row.name).folder.casefold()
    if folder in names:
        why = f"`tables` has {names[folder]!r} with another source; choose another `schema`, or exclude one"
        return replace(row, state=FoundState.NAME_TAKEN, reason=why)
    others = [address for address in same[folder] if address != row.address]
    if others:
        why = f"{', '.join(others)} has this name, too; write a `schema` with {{folder}}, or exclude one"
        return replace(row, state=FoundState.NAME_TAKEN, reason=why)
    return row


def _is_candidate(row: DiscoveredTable) -> bool:
    """Whether it is a table with a name, whatever else keeps it from being mirrored."""
    return row.state not in (
        FoundState.EXCLUDED,
        FoundState.NOT_A_TABLE,
        FoundState.UNREADABLE,
        FoundState.UNREAD,
        FoundState.NAME_REFUSED,
    )


def _table(rule: DiscoverRule, path: str, keys: tuple[str, ...]) -> TableConfig:
    own = rule.settings.model_dump(exclude_unset=True)
    return TableConfig.model_validate({**own, "keys": keys, "source": rule.place.source(path)})


def _outcome(one: RuleFinding, rows: Sequence[DiscoveredTable]) -> RuleOutcome:
    mine = [row for row in rows if row.rule == one.rule]
    names = {known for row in mine for known in (row.name, row.name.rpartition(".")[2])} | {DEFAULT_KEYS}
    unused = tuple(name for name in one.settings.keys if name not in names) if one.finding else ()
    tables = sum(_is_candidate(row) for row in mine)
    mirrored = sum(row.state.is_mirrored for row in mine)
    trouble, code = (one.finding.trouble, one.finding.code) if one.finding else ("", None)
    return RuleOutcome(one.rule, one.place, len(mine), tables, mirrored, trouble, unused, code)
