"""The loopback OneLake in a process of its own, so that it shares neither the publisher's memory nor its lock."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from azure.core.credentials import TokenCredential
from azure.identity import ClientSecretCredential

from mirror_assets.zones.onelake.clients import Clients, open_clients
from mirror_assets.zones.onelake.onelake_zone import OneLakeAddress
from mirror_assets_tests.worlds.onelake import LoopbackOneLake, Operation, Principal


@dataclass(frozen=True)
class Remote:
    """The server as its clients know it."""

    url: str
    ca: Path
    principal: Principal
    pipe: Connection

    def new_item(self) -> OneLakeAddress:
        """A new landing zone."""
        self.pipe.send("item")
        return OneLakeAddress.parse(self.pipe.recv())

    def requests(self) -> Counter[Operation]:
        """The requests to OneLake since the last call, by kind."""
        self.pipe.send("requests")
        counted: Counter[Operation] = self.pipe.recv()
        return counted

    def credential(self) -> TokenCredential:
        """Who may sign in."""
        who = self.principal
        return ClientSecretCredential(
            who.tenant,
            who.client,
            who.secret,
            authority=self.url,
            disable_instance_discovery=True,
            connection_verify=str(self.ca),
        )

    def clients(self, address: OneLakeAddress) -> Clients:
        """The product's clients of a landing zone."""
        return open_clients(address, self.credential(), ca_bundle=self.ca)


@contextmanager
def remote() -> Iterator[Remote]:
    """A server, which ends with the context."""
    here, there = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(there,), daemon=True)
    process.start()
    try:
        url, ca, principal = here.recv()
        yield Remote(url, ca, principal, here)
    finally:
        here.send("end")
        process.join(10)


def _serve(pipe: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder, LoopbackOneLake(Path(folder)) as server:
        pipe.send((server.url, server.ca, server.principal))
        while (requested := pipe.recv()) != "end":
            if requested == "item":
                pipe.send(server.new_item().url)
            else:
                pipe.send(server.log.counts())
                server.log.reset()
