"""Discovery's memory: a control file in the landing zone, so that all processes know the same tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mirror_assets.config.discovered import DiscoveredTable
from mirror_assets.features.init.errors import MEMORY_DAMAGED
from mirror_assets.features.init.finding import PlaceFinding
from mirror_assets.landing.format import Record
from mirror_assets.landing.names import DISCOVERED, TableName
from mirror_assets.landing.steps import ControlFile, drive, read_control_file, write_control_file
from mirror_assets.zones.landing_zone import Zone

if TYPE_CHECKING:
    from mirror_assets.features.init.choose_tables import RuleFinding


class DiscoveryMemory(Record):
    """`_discovered/tables.json`: the newest finding of each place, and the source of each discovered table.

    `sources` has the address of the source by the table's folder in the landing zone, in lower case. Nothing is secret.
    """

    format: Literal[1] = 1
    places: tuple[PlaceFinding, ...] = ()
    sources: dict[str, str] = Field(default_factory=dict)

    def finding(self, place: str) -> PlaceFinding | None:
        """Return the finding of a place, or None before its first scan."""
        return next((one for one in self.places if one.place == place), None)

    def after(self, findings: Iterable[RuleFinding], tables: Sequence[DiscoveredTable]) -> DiscoveryMemory:
        """Return the memory with the findings that have changed, and with the sources of the mirrored tables.

        A table that was deleted no longer owns its name.
        """
        places, deleted = {one.place: one for one in self.places}, set[str]()
        for one in findings:
            known = self.finding(one.place.name)
            if one.finding is not None and one.finding.differs_from(known):
                places[one.place.name] = one.finding
                deleted |= one.deleted_since(known)
        sources = {name: address for name, address in self.sources.items() if address not in deleted}
        sources |= {name_key(row.name): row.address for row in tables if row.state.is_mirrored}
        in_order = {name: sources[name] for name in sorted(sources)}
        return DiscoveryMemory(places=tuple(places[name] for name in sorted(places)), sources=in_order)


def name_key(name: str) -> str:
    """Return the text by which two tables of the mirror have the same name."""
    return TableName.parse(name).folder.casefold()


def read_memory(zone: Zone, *, replaces_damaged: bool) -> ControlFile[DiscoveryMemory]:
    """Read the memory of a landing zone; its record is None before the first scan.

    Raises MEMORY_DAMAGED, unless the file is to be replaced, and what a landing zone's store raises.
    """
    store = zone.open()
    found = drive(read_control_file(DiscoveryMemory, DISCOVERED, is_hint=True), store)
    if found.content is not None and found.record is None and not replaces_damaged:
        raise MEMORY_DAMAGED(path=f"{store.root}/{DISCOVERED}")
    return found


def write_memory(zone: Zone, found: ControlFile[DiscoveryMemory], memory: DiscoveryMemory) -> bool:
    """Write the memory unless it is unchanged; return False if another process has changed it since it was found."""
    return memory == found.record or drive(write_control_file(found, memory), zone.open())
