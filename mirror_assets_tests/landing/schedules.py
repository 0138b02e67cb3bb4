"""Every schedule of a few publishers, a consumer and a bad network, over a store in memory.

A publisher is a pure function of the answers it got, so a world is the store plus what each publisher was answered. The
search goes breadth first and visits each world once; the worlds it counts are facts, not samples.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mirror_assets.errors import MirrorError, RetryError, UnknownOutcome
from mirror_assets.landing.errors import SliceMissing
from mirror_assets.landing.names import landing_number
from mirror_assets.landing.recover import recover
from mirror_assets.landing.state import read_manifest
from mirror_assets.landing.steps import Request, drive
from mirror_assets.storage.errors import RequestUnknown
from mirror_assets_tests.landing.faults import WRITES, shown
from mirror_assets_tests.landing.minds import Ended, Minds, Raised, Start
from mirror_assets_tests.landing.staging import TABLE
from mirror_assets_tests.storage.memory import MemoryStore

_TRY_AGAIN = (RetryError, UnknownOutcome, SliceMissing)


class Violation(AssertionError):
    """The protocol broke; the message is the schedule that leads there."""


@dataclass(frozen=True)
class World:
    """The store with a hash of it, what stands in the table folder, and all else that decides what can happen next.

    `ever` is the ETag of each file that ever landed, by number - 1; `flying` are requests that may still arrive.
    """

    store: MemoryStore = field(compare=False)
    stored: int
    landing: tuple[tuple[int, str], ...] = field(compare=False)
    minds: tuple[int, ...]
    ever: tuple[str, ...]
    flying: frozenset[Request]
    losses: int
    crashes: int


@dataclass(frozen=True)
class Search:
    """What to search: where the zone stands, who publishes, what must land in which order, and what may go wrong."""

    zone: MemoryStore
    publishers: tuple[Start, ...]
    contents: Mapping[str, object]
    expected: tuple[object, ...]
    flying: frozenset[Request] = frozenset()
    losses: int = 0
    crashes: int = 0
    rebuild_life: int | None = None

    def run(self) -> int:
        """How many worlds there are. Raises Violation at the first that breaks a rule."""
        minds = Minds(self.publishers)
        landing = _landing(self.zone)
        ever = tuple(etag for _, etag in landing)
        started = tuple(minds.born(publisher, 0) for publisher in range(len(self.publishers)))
        stored = hash(self.zone.fingerprint())
        first = World(self.zone.clone(), stored, landing, started, ever, self.flying, self.losses, self.crashes)
        seen: dict[int, tuple[int, str]] = {hash(first): (0, "")}
        queue, settled = deque([first]), set[tuple[int, tuple[str, ...]]]()
        while queue:
            world = queue.popleft()
            key = hash(world)
            try:
                if _all_ended_well(minds, world) and (world.stored, world.ever) not in settled:
                    settled.add((world.stored, world.ever))
                    self.settle(world)
                for action, after in _successors(minds, world):
                    if (after_key := hash(after)) not in seen:
                        seen[after_key] = (key, action)
                        queue.append(after)
            except AssertionError as broken:
                raise Violation("\n".join((*_trace(seen, key), str(broken)))) from None
        return len(seen)

    def settle(self, world: World) -> None:
        """Fail unless recovery, and then every publisher once more, leave just what is expected landed."""
        recovered = _undisturbed(world, lambda _: recover(TABLE, self.rebuild_life))
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
    except _TRY_AGAIN:
        pass  # it was covered by another, or its parts were collected: what landed is what counts
    standing, after = drive(read_manifest(TABLE), store), _with_store(world, store)
    assert standing is None or len(after.ever) == standing.manifest.next_number - 1, "committed, and not landed"
    return after


def _trace(seen: dict[int, tuple[int, str]], key: int) -> list[str]:
    actions: list[str] = []
    while seen[key][1]:
        key, action = seen[key]
        actions.append(action)
    return actions[::-1]


def _successors(minds: Minds, world: World) -> Iterator[tuple[str, World]]:
    if len(world.landing) > 1:
        store, number = world.store.clone(), world.landing[0][0]
        store.delete(TABLE.landing_file(number))
        yield f"the service removes {number}", _with_store(world, store)
    for delayed in world.flying:
        late, _ = _performed(replace(world, flying=world.flying - {delayed}), delayed)
        yield f"late: {shown(delayed)}", late
    for publisher, mind in enumerate(world.minds):
        request = minds.wants(mind)
        if not isinstance(request, Ended):
            for action, after in _moves(minds, world, publisher, request):
                yield f"{'ABC'[publisher]}: {shown(request)} {action}", after


def _moves(minds: Minds, world: World, publisher: int, request: Request) -> Iterator[tuple[str, World]]:
    def told(world: World, answer: Hashable) -> World:
        mind = minds.after(world.minds[publisher], answer)
        return replace(world, minds=(*world.minds[:publisher], mind, *world.minds[publisher + 1 :]))

    after, answer = _performed(world, request)
    yield f"-> {answer.text if isinstance(answer, Raised) else 'ok'}"[:60], told(after, answer)
    if world.losses and isinstance(request, WRITES):
        unknown = Raised("no answer", RequestUnknown(shown(request), "no answer"))
        yield "done, but no answer", told(replace(after, losses=world.losses - 1), unknown)
        delayed = replace(world, losses=world.losses - 1, flying=world.flying | {request})
        yield "delayed, no answer", told(delayed, unknown)
    if world.crashes:
        reborn = minds.reborn(world.minds[publisher])
        crashed = (*world.minds[:publisher], reborn, *world.minds[publisher + 1 :])
        yield "crashes before it", replace(world, minds=crashed, crashes=world.crashes - 1)


def _performed(world: World, request: Request) -> tuple[World, Hashable]:
    """The world after the request took effect, and its answer."""
    writes = isinstance(request, WRITES)
    store = world.store.clone() if writes else world.store
    try:
        reply: object = request.perform(store)
    except MirrorError as error:
        return world, Raised(f"{type(error).__name__}: {error.what}", error)
    answer = tuple(reply) if isinstance(reply, list) else reply
    assert isinstance(answer, Hashable)
    return _with_store(world, store) if writes else world, answer


def _with_store(world: World, store: MemoryStore) -> World:
    """The world with the store after a write. What is new in the table folder has the next number, never an old one.

    A folder that is gone is a table that is dropped: in another one, numbers begin anew.
    """
    landing = _landing(store)
    ever = world.ever if store.folder_identity(TABLE.folder) is not None else ()
    for number, etag in landing:
        if (number, etag) not in world.landing:
            assert number > len(ever), f"number {number} landed a second time"
            assert number == len(ever) + 1, f"gap before number {number}"
            ever = (*ever, etag)
    return replace(world, store=store, stored=hash(store.fingerprint()), landing=landing, ever=ever)


def _landing(store: MemoryStore) -> tuple[tuple[int, str], ...]:
    """Number and ETag of the files in the table folder; an ETag tells where the file was staged."""
    found = ((landing_number(info.name), info.etag) for info in store.list(TABLE.folder))
    return tuple((number, etag) for number, etag in found if number)


def _all_ended_well(minds: Minds, world: World) -> bool:
    """Whether all publishers have ended. Fails if one ended with anything but "try again"."""
    endings = [minds.wants(mind) for mind in world.minds]
    for ending in endings:
        if isinstance(ending, Ended) and ending.error is not None:
            assert isinstance(ending.error, _TRY_AGAIN), f"ended with {ending.error!r}"
    return all(isinstance(ending, Ended) for ending in endings)
