"""Watches a table folder after every request, as a replicator with unlimited eyes would."""

from __future__ import annotations

from dataclasses import dataclass

from mirror_assets.landing.format import Receipt, SliceRecord
from mirror_assets.landing.names import landing_number
from mirror_assets_tests.landing.staging import TABLE, part_bytes
from mirror_assets_tests.worlds.onelake import LoopbackItem


@dataclass(frozen=True, order=True)
class Place:
    """Where a part belongs: the epoch of the table folder, and the number in it."""

    epoch: int
    number: int


class Watch:
    """What was ever seen under a landing file's name, and everything that was wrong with it."""

    def __init__(self, item: LoopbackItem) -> None:
        self._item = item
        self._places: dict[bytes, Place] = {}
        self._visible: frozenset[Place] = frozenset()
        self._newest = Place(0, 0)
        self.wrong: list[str] = []

    def expect(self, record: SliceRecord) -> None:
        """Know the slice's parts, and where they belong."""
        for index in range(len(record.parts)):
            data = part_bytes(Receipt.model_validate(record, from_attributes=True), index)
            self._places[data] = Place(record.epoch, record.first_number + index)

    def begin(self) -> None:
        """Forget what was seen; what is there now has landed before."""
        self.wrong, self._visible, self._newest = [], frozenset(), Place(0, 0)
        found = frozenset(place for name in self._names() if (place := self._places.get(self._data(name))))
        self._visible, self._newest = found, max(found, default=Place(0, 0))

    def look(self) -> None:
        """See whether each visible file is whole and the part that belongs there, and each new one the next."""
        seen = set()
        for name in self._names():
            number, place = landing_number(name), self._places.get(self._data(name))
            if place is None:
                self.wrong.append(f"{name} is partial, or nobody's")
            elif place.number != number:
                self.wrong.append(f"{name} holds what belongs to {place.number}")
            else:
                seen.add(place)
        for place in sorted(seen - self._visible):
            self._appeared(place)
        self._visible = frozenset(seen)

    def _appeared(self, place: Place) -> None:
        next_one = Place(self._newest.epoch, self._newest.number + 1)
        if place != next_one and not (place.epoch > self._newest.epoch and place.number == 1):
            self.wrong.append(f"{place} landed after {self._newest}")
        self._newest = max(self._newest, place)

    def _names(self) -> list[str]:
        return [name for name in self._item.names(TABLE.folder) if landing_number(name)]

    def _data(self, name: str) -> bytes:
        return self._item.read(f"{TABLE.folder}/{name}")
