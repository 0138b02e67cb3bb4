"""The product's store on the loopback OneLake."""

from __future__ import annotations

from mirror_assets.zones.onelake.clients import open_clients
from mirror_assets.zones.onelake.onelake_store import OneLakeStore
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets.zones.onelake.requests import RetryPolicy
from mirror_assets_tests.worlds.onelake.item import LoopbackItem
from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

# Retries without waiting: a test's time is its requests'.
HASTY = RetryPolicy(limit_seconds=5.0, first_pause=0.001, longest_pause=0.002)


def loopback_store(server: LoopbackOneLake, item: LoopbackItem, patience: RetryPolicy = HASTY) -> OneLakeStore:
    """The store of the item's landing zone, through the real SDK and a real token."""
    clients = open_clients(OneLakeAddress.parse(item.url), server.credential(), ca_bundle=server.ca)
    return OneLakeStore(clients, patience)
