"""Adds the tables that the rules of `discover` find to the configuration: from discovery's memory, or by a scan."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from mirror_assets.config.discovered import When
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.choose_tables import RuleFinding, choose_tables
from mirror_assets.features.init.discover_places import place_of
from mirror_assets.features.init.discover_rule import DiscoverSettings
from mirror_assets.features.init.discovery_memory import DiscoveryMemory, MemoryFile
from mirror_assets.features.init.finding import PlaceFinding, scan
from mirror_assets.features.init.time_limit import TimeLimit

if TYPE_CHECKING:
    from mirror_assets.features.init.found_places import Place

# Dagster ends a code server that does not answer for half a minute.
_LOADING_SECONDS = 20.0
_ZONE_SECONDS = 10.0
_WRITING_SECONDS = 4.0
_ZONE = "the landing zone"
# Processes that scan at the same time repeat what they have found after another one has saved its scan.
_TRIES = 5
_LOG = logging.getLogger(__name__)


def find_tables(config: Config, when: When) -> Config:
    """Return the configuration with the tables that its rules find, in place of those that they found before.

    Raises nothing: a place that can't be scanned retains its known tables, also while the landing zone with discovery's
    memory can't be read, and `Config.discovered` has the reason.
    """
    limit = TimeLimit(_LOADING_SECONDS if when in (When.NEVER, When.UNKNOWN) else None)
    places = [place_of(config, rule) for rule in DiscoverSettings.of(config).discover]
    found, is_saved, tries = config, False, 0
    while not is_saved and tries < _TRIES:
        found, is_saved = _find(config, places, when, limit)
        tries += 1
    for message in found.discovered.refused:
        if message not in config.discovered.refused:
            _LOG.warning("%s: %s", config.file, message)
    return found


def _find(config: Config, places: Sequence[Place], when: When, limit: TimeLimit) -> tuple[Config, bool]:
    """Read the memory, scan the places that are due, and save what has changed; return False if another process has."""
    file, trouble, known = None, None, config.discovered.memory
    own = known if isinstance(known, DiscoveryMemory) else None
    try:
        read = partial(MemoryFile.read, config.zone, replaces_damaged=when is When.ACCEPT)
        file = limit.call(_ZONE, read, at_most=_ZONE_SECONDS)
    except MirrorError as error:
        trouble = error
    before = (file.memory if file else None) or own or DiscoveryMemory()
    # The names that are taken are in the memory: a process that can't read it adds nothing to the tables it knows.
    due = When.NEVER if file is None and own is not None else when
    findings = _findings(config, places, before, due, limit)
    discovered, tables = choose_tables(config, findings, before.sources)
    after, is_saved = before.after(findings, discovered.tables), True
    if file is not None and any(one.is_scanned for one in findings):
        try:
            is_saved = limit.call(_ZONE, partial(file.write, after))
        except MirrorError as error:
            trouble = error
    is_confirmed = file is not None or (own is not None and config.discovered.is_confirmed)
    discovered = replace(discovered, memory=after, is_confirmed=is_confirmed)
    return config.with_found(discovered.with_trouble(trouble) if trouble else discovered, tables), is_saved


def _findings(
    config: Config, places: Sequence[Place], memory: DiscoveryMemory, when: When, limit: TimeLimit
) -> list[RuleFinding]:
    """Return the finding of each rule: a new one if its place is due, or else the known one."""
    scanned = dict[str, PlaceFinding]()
    for place in places:
        known = memory.finding(place.name)
        is_known = known is not None and known.listed_at > 0
        if place.name not in scanned and when is not When.NEVER and not (when is When.UNKNOWN and is_known):
            scanned[place.name] = _scanned(config, places, place, when, known, limit)
    return [
        RuleFinding(
            number, rule, place, scanned.get(place.name) or memory.finding(place.name), is_scanned=place.name in scanned
        )
        for number, (rule, place) in enumerate(zip(DiscoverSettings.of(config).discover, places, strict=True))
    ]


def _scanned(
    config: Config,
    places: Sequence[Place],
    place: Place,
    when: When,
    known: PlaceFinding | None,
    limit: TimeLimit,
) -> PlaceFinding:
    """Scan the place; return the known finding with the reason if that fails."""
    rules = [
        (number, rule)
        for number, rule in enumerate(DiscoverSettings.of(config).discover)
        if places[number].name == place.name
    ]

    def is_wanted(path: str) -> bool:
        return not all(rule.excludes(PurePosixPath(place.label, path)) for _, rule in rules)

    request = partial(
        scan,
        place,
        known,
        time.time(),
        wanted=is_wanted,
        all_others=when in (When.NOW, When.ACCEPT),
        accepts_loss=when is When.ACCEPT,
    )
    try:
        finding = limit.call(place.name, request, spare=_WRITING_SECONDS)
    except MirrorError as error:
        update = {"trouble": str(error), "code": error.code.value}
        finding = (known or PlaceFinding(place=place.name, listed_at=0)).model_copy(update=update)
    if finding.trouble and finding.trouble != (known.trouble if known else ""):
        _LOG.warning("%s: the set of tables is unchanged: %s", config.place(f"discover.{rules[0][0]}"), finding.trouble)
    return finding
