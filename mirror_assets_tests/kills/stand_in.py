"""The stand-in for Fabric's replicator at work beside the publishers: it applies and takes away what lands."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mirror_assets_tests.kills.place import Place

_TICK = 0.1


@contextmanager
def applying(place: Place) -> Iterator[None]:
    """Apply each file as soon as it has landed, as long as the block lasts."""
    failures: list[Exception] = []
    done = threading.Event()

    def context() -> None:
        try:
            while not done.is_set():
                if place.eyes.wait(_TICK):
                    apply(place)
        except Exception as error:  # noqa: BLE001 raised below
            failures.append(error)

    thread = threading.Thread(target=context, name="stand-in", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
    if failures:
        raise failures[0]


def apply(place: Place) -> None:
    """One iteration: what has landed is applied, and all but the last file is moved away."""
    place.ground.replicator(place.store).poll()
