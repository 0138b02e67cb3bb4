"""Chooses the discovered tables to mirror, and gives the reason for each folder that is not mirrored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from mirror_assets.config.discovered import Discovered, DiscoveredTable, FoundState, RuleOutcome
from mirror_assets.config.model import Config
from mirror_assets.config.setting_values import Changes
from mirror_assets.config.table_settings import TableConfig
from mirror_assets.errors import NEXT
from mirror_assets.features.init.discover_rule import DEFAULT_KEYS, DiscoverRule, NewTables
from mirror_assets.features.init.discovery_memory import name_key
from mirror_assets.features.init.finding import FolderFacts, FolderKind, FoundFolder, Place, PlaceFinding
from mirror_assets.lakes.catalogs import CatalogTable, last_address
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.landing.errors import NameRefused
from mirror_assets.landing.names import TableName
from mirror_assets.settings import is_uri

_STATES = {
    FolderKind.NOT_A_TABLE: FoundState.NOT_A_TABLE,
    FolderKind.UNREADABLE: FoundState.UNREADABLE,
    FolderKind.UNLISTED: FoundState.UNREADABLE,
}


@dataclass(frozen=True)
class RuleFinding:
    """A rule by its number (from 0), its place, and the place's finding: None before its first scan."""

    number: int
    rule: DiscoverRule
    place: Place
    finding: PlaceFinding | None
    is_scanned: bool = False

    def deleted_since(self, before: PlaceFinding | None) -> set[str]:
        """Return the addresses of the tables that an earlier finding has and this one lacks."""
        now = {folder.path for folder in self.finding.folders} if self.finding else set[str]()
        deleted = set[str]()
        for folder in before.folders if before else ():
            if folder.facts.is_table and folder.path not in now:
                with suppress(ValueError):  # readers of Delta tables can't open it
                    deleted.add(self.place.address(folder.path))
        return deleted


def choose_tables(
    config: Config, findings: Sequence[RuleFinding], sources: Mapping[str, str]
) -> tuple[Discovered, dict[str, TableConfig]]:
    """Return the state of every folder, and the settings of the tables to mirror, by name.

    Tables in the file have precedence, then the first rule. If two folders have the same name, the one that `sources`
    has remains mirrored. If it has none of them, neither is mirrored: the choice would depend on the order in which
    they were found.
    """
    own = _own_places(config)
    judged = [
        _judge(config, one, one.finding, folder, own)
        for one in findings
        if one.finding
        for folder in one.finding.folders
    ]
    rows = _without_duplicates(config, judged, sources)
    tables = dict[str, TableConfig]()
    for row in rows:
        if row.state.is_mirrored:
            rule = findings[row.rule].rule
            settings = rule.settings.model_dump(exclude_unset=True)
            source = rule.place.source(row.path)
            tables[row.name] = TableConfig.model_validate({**settings, "keys": row.keys, "source": source})
    return Discovered(rows, tuple(_outcome(one, rows) for one in findings)), tables


def _judge(
    config: Config, one: RuleFinding, finding: PlaceFinding, folder: FoundFolder, own: Iterable[tuple[str, str]]
) -> DiscoveredTable:
    """Return the state of a folder, without regard to others."""
    rule, path = one.rule, PurePosixPath(one.place.label, folder.path)
    try:
        address = one.place.address(folder.path)
    except ValueError as error:
        return DiscoveredTable(path.name, folder.path, folder.path, one.number, FoundState.NAME_REFUSED, str(error))
    name, location = rule.name(path), _location(config, address)
    keys = rule.keys_of(name)
    keys = config.defaults.keys if keys is None else keys
    inside = next((words for words, place in own if _holds(place, location)), None)
    if inside:
        state, reason = FoundState.EXCLUDED, f"it is in {inside}"
    elif rule.excludes(path):
        state, reason = FoundState.EXCLUDED, "`exclude` matches its path"
    elif folder.facts.kind is FolderKind.UNREAD:
        state, reason = FoundState.UNREAD, "the next scan reads it"
    elif not folder.facts.is_table:
        state, reason = _STATES[folder.facts.kind], folder.facts.why
    elif refusal := _refusal(name, path.name):
        state, reason = FoundState.NAME_REFUSED, refusal
    elif unfit := _unfit(config, rule, name, keys, folder.facts):
        state, reason = unfit
    elif rule.new_tables is NewTables.HOLD and not any(path.match(pattern) for pattern in rule.approved):
        reason = f"approve it: add {path.parent.name}/{path.name} to `approved`, or list it under `tables`"
        state = FoundState.HELD
    else:
        state, reason = FoundState.NEW if folder.first_seen >= finding.listed_at else FoundState.MIRRORED, ""
    return DiscoveredTable(name, address, folder.path, one.number, state, reason, keys if state.is_table else ())


def _refusal(name: str, folder: str) -> str | None:
    """Return the reason why a folder's name can't be a table's, or None."""
    try:
        return None if TableName.parse(name).table == folder else f"a name can't have the dot of the folder {folder!r}"
    except NameRefused as error:
        return error.what


def _unfit(
    config: Config, rule: DiscoverRule, name: str, keys: Sequence[str], facts: FolderFacts
) -> tuple[FoundState, str] | None:
    """Return the reason why the table can't be mirrored with these keys and its `changes`, or None."""
    settings = rule.settings if "changes" in rule.settings.model_fields_set else config.defaults
    missing = [key for key in keys if key not in facts.columns]
    table = name.rpartition(".")[2]
    if missing:
        why = f"the table has no column {', '.join(map(repr, missing))}; set its keys with `keys: {{{table}: […]}}`"
        return FoundState.NO_KEYS, why
    if settings.changes.needs_keys and not keys:
        return FoundState.NO_KEYS, f"set its keys with `keys: {{{table}: […]}}`, or those of all tables with `default`"
    if settings.changes is Changes.FEED and not facts.feed:
        return FoundState.FEED_OFF, "set delta.enableChangeDataFeed = true at the source, or another `changes`"
    if settings.changes is Changes.ROW_TRACKING and not facts.row_tracking:
        why = "set delta.enableRowTracking = true at the source, which upgrades its protocol, or another `changes`"
        return FoundState.ROW_TRACKING_OFF, why
    return None


def _without_duplicates(
    config: Config, judged: Iterable[DiscoveredTable], sources: Mapping[str, str]
) -> tuple[DiscoveredTable, ...]:
    """Return the rows, one per location, with the states of those that `tables` has and whose name is taken."""
    rows = dict[str, DiscoveredTable]()
    for row in judged:
        rows.setdefault(_location(config, row.address), row)
    named = {_location(config, config.table(name).source): name for name in config.named_tables}
    names = {name_key(name): name for name in config.named_tables}
    same = defaultdict[str, list[str]](list)
    for location, row in rows.items():
        if row.state.is_table and location not in named:
            same[name_key(row.name)].append(row.address)
    for location, row in rows.items():
        if location in named:
            reason = "it is listed under `tables`"
            rows[location] = replace(row, name=named[location], state=FoundState.NAMED, reason=reason)
            continue
        if not row.state.is_table:
            continue
        key = name_key(row.name)
        owner, others = sources.get(key), [address for address in same[key] if address != row.address]
        if key in names:
            reason = f"`tables` has {names[key]!r} with another source.{NEXT}choose another `schema`, or exclude one."
        elif owner in others:
            reason = f"{owner} has this name.{NEXT}rename or exclude the new folder, or list it under `tables`."
        elif others and owner != row.address:
            reason = f"{', '.join(others)} has the same name.{NEXT}set a `schema` with {{folder}}, or exclude one."
        else:
            continue
        rows[location] = replace(row, state=FoundState.NAME_TAKEN, reason=reason)
    return tuple(rows.values())


def _outcome(one: RuleFinding, rows: Sequence[DiscoveredTable]) -> RuleOutcome:
    mine = [row for row in rows if row.rule == one.number]
    names = {known for row in mine for known in (row.name, row.name.rpartition(".")[2])} | {DEFAULT_KEYS}
    trouble, code = (one.finding.trouble, one.finding.code) if one.finding else ("", None)
    return RuleOutcome(
        one.number,
        one.place.name,
        folders=len(mine),
        tables=sum(row.state.is_table for row in mine),
        mirrored=sum(row.state.is_mirrored for row in mine),
        trouble=trouble,
        unused_keys=tuple(name for name in one.rule.keys if name not in names) if one.finding else (),
        code=code,
    )


def _location(config: Config, address: str) -> str:
    """Return the last known location of a table: a catalog's table may be in a folder that a rule finds."""
    return last_address(address, config.catalogs) or address


def _own_places(config: Config) -> list[tuple[str, str]]:
    """Return the folders that this project writes, each with words for it."""
    mirror = config.mirror_place.tables if config.mirror_place else str(config.mirror.path)
    of_features = [place for feature in config.all_features for place in feature.places(config).items()]
    return [*of_features, ("the landing zone", config.zone.uri), ("the mirror", mirror)]


def _holds(folder: str, address: str) -> bool:
    if is_uri(folder) != is_uri(address) or CatalogTable.parse(address) is not None:
        return False
    if is_uri(folder):
        return LakeAddress.parse(folder).holds(LakeAddress.parse(address))
    return PurePosixPath(address).is_relative_to(folder)
