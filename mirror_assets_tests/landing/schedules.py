"""Every schedule of a few publishers, a consumer and a bad network, over a store in memory.

A publisher is a pure function of the answers it got, so a world is the store plus what each publisher was answered. The
search goes breadth first and visits each world once; the worlds it counts are facts, not samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.names import landing_number
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import Create, Delete, DeleteTree, Rename, Replace, Request, drive
from mirror_assets.storage.errors import RequestUnknown
from mirror_assets_tests.landing.minds import Ended, Minds, Raised, Start
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.storage.memory import MemoryStore

_WRITES = (Create, Replace, Rename, Delete, DeleteTree)


class Violation(AssertionError):
    """The protocol broke; the message is the schedule that leads there."""


@dataclass(frozen=True)
class World:
    """The store, the publishers' minds, what ever landed (contents by number - 1), what is in flight, faults left."""

    store: MemoryStore = field(compare=False)
    minds: tuple[int, ...]
    ever: tuple[str, ...]
    flying: frozenset[Request]
    losses: int
    crashes: int

    def key(self) -> int:
        """A hash of all that matters for what can happen next."""
        return hash((self.store.fingerprint(), self.minds, self.ever, self.flying, self.losses, self.crashes))


@dataclass(frozen=True)
class Search:
    """What to search: where the zone stands, who publishes, what must land in which order, and what may go wrong."""

    zone: MemoryStore
    publishers: tuple[Start, ...]
    contents: Mapping[str, object]
    expected: tuple[object, ...]
    losses: int = 0
    crashes: int = 0

    def run(self) -> int:
        """How many worlds there are. Raises Violation at the first that breaks a rule."""
        minds = Minds(self.publishers)
        ever = tuple(etag for _, etag in sorted(_landing(self.zone).items()))
        started = tuple(minds.born(publisher, 0) for publisher in range(len(self.publishers)))
        first = World(self.zone.clone(), started, ever, frozenset(), self.losses, self.crashes)
        seen: dict[int, tuple[int, str]] = {first.key(): (0, "")}
        queue = deque([first])
        settled: set[Hashable] = set()
        while queue:
            world = queue.popleft()
            try:
                if _all_ended_well(minds, world) and world.store.fingerprint() not in settled:
                    settled.add(world.store.fingerprint())
                    self._settle(world)
                for action, after in _successors(minds, world):
                    if (key := after.key()) not in seen:
                        seen[key] = (world.key(), action)
                        queue.append(after)
            except AssertionError as broken:
                raise Violation("\n".join((*_trace(seen, world.key()), str(broken)))) from None
        return len(seen)

    def _settle(self, world: World) -> None:
        """Fail unless recovery, and then every publisher once more, leave just what is expected landed."""
        recovered = _undisturbed(world, lambda _: recover(TABLE))
        self._require_order(recovered.ever)
        for start in self.publishers:
            recovered = _undisturbed(recovered, start)
        self._require_order(recovered.ever)
        assert len(recovered.ever) == len(self.expected), "not all has landed in the end"

    def _require_order(self, ever: tuple[str, ...]) -> None:
        found = tuple(self.contents[etag] for etag in ever)
        assert found == self.expected[: len(found)], f"landed {found}"


def _undisturbed(world: World, start: Start) -> World:
    """The world after these steps ran alone."""
    store = world.store.clone()
    try:
        drive(start(99), store)
    except RetryError:
        pass  # it was covered by another, or its parts were collected: what landed is what counts
    standing = drive(read_manifest(TABLE), store)
    ever = _remembered(world, store)
    assert standing is None or len(ever) == standing.manifest.next_number - 1, "committed, and not landed"
    return replace(world, store=store, ever=ever)


def _trace(seen: dict[int, tuple[int, str]], key: int) -> list[str]:
    actions: list[str] = []
    while seen[key][1]:
        key, action = seen[key]
        actions.append(action)
    return actions[::-1]


def _successors(minds: Minds, world: World) -> Iterator[tuple[str, World]]:
    landing = sorted(_landing(world.store))
    if len(landing) > 1:
        store = world.store.clone()
        store.delete(TABLE.landing_file(landing[0]))
        yield f"the service removes {landing[0]}", replace(world, store=store)
    for request in world.flying:
        late, _ = _performed(replace(world, flying=world.flying - {request}), request)
        yield f"late: {_shown(request)}", late
    for publisher, mind in enumerate(world.minds):
        request = minds.wants(mind)
        if not isinstance(request, Ended):
            for action, after in _moves(minds, world, publisher, request):
                yield f"{'ABC'[publisher]}: {_shown(request)} {action}", after


def _moves(minds: Minds, world: World, publisher: int, request: Request) -> Iterator[tuple[str, World]]:
    def told(world: World, answer: Hashable) -> World:
        mind = minds.after(world.minds[publisher], answer)
        return replace(world, minds=(*world.minds[:publisher], mind, *world.minds[publisher + 1 :]))

    after, answer = _performed(world, request)
    yield f"-> {answer.text if isinstance(answer, Raised) else 'ok'}"[:60], told(after, answer)
    if world.losses and isinstance(request, _WRITES):
        unknown = Raised("no answer", RequestUnknown(_shown(request), "no answer"))
        yield "done, but no answer", told(replace(after, losses=world.losses - 1), unknown)
        delayed = replace(world, losses=world.losses - 1, flying=world.flying | {request})
        yield "delayed, no answer", told(delayed, unknown)
    if world.crashes:
        reborn = minds.reborn(world.minds[publisher])
        crashed = (*world.minds[:publisher], reborn, *world.minds[publisher + 1 :])
        yield "crashes before it", replace(world, minds=crashed, crashes=world.crashes - 1)


def _performed(world: World, request: Request) -> tuple[World, Hashable]:
    """The world after the request took effect, and its answer."""
    store = world.store.clone() if isinstance(request, _WRITES) else world.store
    try:
        reply: object = request.perform(store)
    except MirrorError as error:
        return world, Raised(f"{type(error).__name__}: {error.what}", error)
    answer = tuple(reply) if isinstance(reply, list) else reply
    assert isinstance(answer, Hashable)
    return replace(world, store=store, ever=_remembered(world, store)), answer


def _remembered(world: World, store: MemoryStore) -> tuple[str, ...]:
    """What ever landed, with what landed now: the next number, and never one that landed before."""
    before, ever = _landing(world.store), world.ever
    for number, etag in sorted(_landing(store).items()):
        if before.get(number) == etag:
            continue
        assert number > len(ever), f"number {number} landed a second time"
        assert number == len(ever) + 1, f"gap before number {number}"
        ever = (*ever, etag)
    return ever


def _landing(store: MemoryStore) -> dict[int, str]:
    """ETags of the files in the table folder, by number; an ETag tells where the file was staged."""
    found = ((landing_number(info.name), info.etag) for info in store.list(TABLE.folder))
    return {number: etag for number, etag in found if number}


def _all_ended_well(minds: Minds, world: World) -> bool:
    """Whether all publishers have ended. Fails if one ended with anything but "try again"."""
    endings = [minds.wants(mind) for mind in world.minds]
    for ending in endings:
        if isinstance(ending, Ended) and ending.error is not None:
            assert isinstance(ending.error, (RetryError, UnknownOutcome)), f"ended with {ending.error!r}"
    return all(isinstance(ending, Ended) for ending in endings)


def _shown(request: Request) -> str:
    return f"{type(request).__name__} {' '.join(str(value) for value in vars(request).values() if isinstance(value, str))}"
