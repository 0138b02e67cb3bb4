"""Where a search over schedules begins: tables old enough for their generations to be rolled up, with tiny roll-ups."""

from __future__ import annotations

from dataclasses import replace

from mirror_assets_tests.landing.cases import history, publisher
from mirror_assets_tests.landing.schedules import Case, roll_ups_of
from mirror_assets_tests.landing.staging import land, position_of, stage
from mirror_assets_tests.zones.memory import MemoryStore


def limits(kept: int = 1) -> dict[str, int]:
    """Two generations a roll-up."""
    return {"GENERATIONS": 2, "KEPT": kept, "FILES": 10}


def aged(zone: MemoryStore, generations: int, publishers: int = 2, kept: int = 1) -> Case:
    """Some attempts at the slice behind so many generations, of which the second and the newest have a file."""
    records = []
    with roll_ups_of(limits(kept)):
        for generation in range(1, generations + 1):
            parts = int(generation in (2, generations))
            records.append(stage(zone, position_of(zone), 6 + generation, parts))
            land(zone, records[-1])
    position = position_of(zone)
    attempts = [stage(zone, position, 7 + generations, attempt=attempt) for attempt in "abc"[:publishers]]
    return Case(
        zone,
        tuple(publisher(attempt) for attempt in attempts),
        (history(*records, attempts[0]),),
        roll_ups=limits(kept),
    )


def rolled_up(zone: MemoryStore, publishers: int = 2, kept: int = 1) -> Case:
    """The first roll-up is due."""
    return aged(zone, 4, publishers, kept)


def rolled_up_again(zone: MemoryStore, publishers: int = 2) -> Case:
    """The second is due, and the first may go once its file has gone."""
    return aged(zone, 6, publishers)


def rolled_up_and_lost(zone: MemoryStore, kept: int = 1) -> Case:
    """The first roll-up is due, everybody dies at some moment, and then the manifest is deleted."""
    return replace(rolled_up(zone, kept=kept), manifest_lost=True)
