"""Adds the tables that the rules of `discover` find to the configuration: from discovery's memory, or by a scan."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import PurePosixPath
from typing import TypeVar

from mirror_assets.config.discovered import When
from mirror_assets.config.model import Config
from mirror_assets.errors import MirrorError
from mirror_assets.features.init.choose_tables import RuleFinding, choose_tables
from mirror_assets.features.init.discover_rule import DiscoverRule, DiscoverSettings, FromCatalog
from mirror_assets.features.init.discovery_memory import DiscoveryMemory, read_memory, write_memory
from mirror_assets.features.init.errors import NO_RESPONSE, request_failed
from mirror_assets.features.init.finding import Place, PlaceFinding, brief_access, scan
from mirror_assets.features.init.listing import Listing, list_catalog, list_folders
from mirror_assets.lakes.catalogs import table_problem, unity_client
from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.settings import ESCAPE, is_uri

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
        read = partial(read_memory, config.zone, replaces_damaged=when is When.ACCEPT)
        file = limit.call(_ZONE, read, at_most=_ZONE_SECONDS)
    except MirrorError as error:
        trouble = error
    before = (file.record if file else None) or own or DiscoveryMemory()
    # The names that are taken are in the memory: a process that can't read it adds nothing to the tables it knows.
    due = When.NEVER if file is None and own is not None else when
    scanned = _scan_places(config, places, before, due, limit)
    findings = [
        RuleFinding(number, rule, place, scanned.get(place.name) or before.finding(place.name))
        for number, (rule, place) in enumerate(zip(DiscoverSettings.of(config).discover, places, strict=True))
    ]
    discovered, tables = choose_tables(config, findings, before.sources)
    after, is_saved = before.after(findings, discovered.tables), True
    if file is not None and scanned:
        try:
            is_saved = limit.call(_ZONE, partial(write_memory, config.zone, file, after))
        except MirrorError as error:
            trouble = error
    is_confirmed = file is not None or (own is not None and config.discovered.is_confirmed)
    discovered = replace(discovered, memory=after, is_confirmed=is_confirmed)
    return config.with_found(discovered.with_trouble(trouble) if trouble else discovered, tables), is_saved


def _scan_places(
    config: Config, places: Sequence[Place], memory: DiscoveryMemory, when: When, limit: TimeLimit
) -> dict[str, PlaceFinding]:
    """Return the new findings of the places that are due, by their names."""
    found = dict[str, PlaceFinding]()
    for place in places:
        known = memory.finding(place.name)
        is_due = when is not When.NEVER and not (when is When.UNKNOWN and known is not None and known.listed_at > 0)
        if is_due and place.name not in found:
            found[place.name] = _scanned(config, places, place, when, known, limit)
    return found


def _scanned(
    config: Config,
    places: Sequence[Place],
    place: Place,
    when: When,
    known: PlaceFinding | None,
    limit: TimeLimit,
) -> PlaceFinding:
    """Scan the place; return the known finding with the reason if that fails."""
    numbers = [number for number, other in enumerate(places) if other.name == place.name]
    rules = [DiscoverSettings.of(config).discover[number] for number in numbers]

    def is_wanted(path: str) -> bool:
        return not all(rule.excludes(PurePosixPath(place.label, path)) for rule in rules)

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
        _LOG.warning("%s: the set of tables is unchanged: %s", config.place(f"discover.{numbers[0]}"), finding.trouble)
    return finding


def place_of(config: Config, rule: DiscoverRule) -> Place:
    """Return the place of a rule; it makes no request yet."""
    if isinstance(rule.place, FromCatalog):
        place, label, pattern = rule.place, rule.place.catalog, rule.place.schema_name
        catalog = config.catalogs[label]
        client = unity_client(label, catalog)

        def table_address(path: str) -> str:
            found = place.source(path)
            # A path without a table is a schema that can't be listed.
            problem = table_problem(catalog.type.value, found.table) if "/" in path else None
            if problem:
                raise ValueError(problem)
            return str(found)

        name = f"the catalog {client.catalog} of {client.server}, schema {pattern}"

        return Place(name, label, table_address, config.locate, partial(list_catalog, client, pattern))

    store, pattern = config.stores[rule.place.store], rule.place.path
    root = store.address

    def folder_address(path: str) -> str:
        address = store.table(path)
        if ESCAPE.search(path) or (is_uri(address) and LakeAddress.parse(address).uri != address):
            raise ValueError(f"readers of Delta tables take {path!r} for another path; rename its folder")
        return address

    own = PurePosixPath(store.root) if root is None else PurePosixPath(root.container, root.path)
    access = config.access(store.root)

    def listing() -> Listing:
        return list_folders(brief_access(access), pattern)

    return Place(f"{store.root} {pattern}", own.name, folder_address, config.locate, listing)


_Result = TypeVar("_Result")


class TimeLimit:
    """The end of all requests together: `seconds` after its creation, or never for None."""

    def __init__(self, seconds: float | None) -> None:
        """Start the time."""
        self._end = None if seconds is None else time.monotonic() + seconds

    def call(self, what: str, request: Callable[[], _Result], *, at_most: float = inf, spare: float = 0.0) -> _Result:
        """Return the result of a request to `what`, which may take `at_most` seconds, and leaves `spare` of the limit.

        Raises MirrorError only: the request's own, request_failed for any other exception, and NO_RESPONSE. A request
        that takes longer continues in its thread, which doesn't keep the process alive.
        """
        done = Future[_Result]()
        if self._end is None:
            _complete(done, what, request)
            return done.result()
        threading.Thread(target=_complete, args=(done, what, request), name=f"request to {what}", daemon=True).start()
        if not wait([done], max(0.0, min(at_most, self._end - spare - time.monotonic()))).done:
            raise NO_RESPONSE(what=what)
        return done.result()


def _complete(done: Future[_Result], what: str, request: Callable[[], _Result]) -> None:
    try:
        done.set_result(request())
    except MirrorError as error:
        done.set_exception(error)
    except Exception as error:  # noqa: BLE001 definitions load whatever a store's SDK raises
        done.set_exception(request_failed(what, error))
