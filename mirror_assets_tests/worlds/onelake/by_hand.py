"""The server as a program of its own, for trying things out: `make onelake`."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from mirror_assets_tests.worlds.onelake.server import LoopbackOneLake

_NEXT = """\
A loopback OneLake listens at {url}. Its data is in memory, and gone when it ends (Ctrl-C).

In another shell, `source {env}`: it sets MIRROR_ONELAKE_URL, the landing zone of a new mirrored database,
MIRROR_ONELAKE_CA and MIRROR_ONELAKE_TRUSTSTORE, what Python and Java have to trust, and the AZURE_ variables, with a
client secret of this start. In mirror.yaml:

landing_zone:
  onelake:
    url: ${{MIRROR_ONELAKE_URL}}
    ca_bundle: ${{MIRROR_ONELAKE_CA}}
    credential: client_secret

With `staging: direct`, Spark's JVM has to trust it too: mirror_assets_tests/worlds/onelake/direct.yaml shows how.
The demo:

make demo ARGS="--folder .onelake/demo --settings mirror_assets_tests/worlds/onelake/upload.yaml"
make demo ARGS="--folder .onelake/demo --settings mirror_assets_tests/worlds/onelake/direct.yaml"
"""


def run(folder: Path, port: int, stop: threading.Event) -> None:
    """Serve until `stop` is set. `env` in the folder is there as long as the server listens."""
    env = folder.absolute() / "env"
    with LoopbackOneLake(folder.absolute(), port) as server:
        try:
            _write(env, variables(server))
            print(_NEXT.format(url=server.url, env=env), flush=True)  # noqa: T201 a program for people
            stop.wait()
        finally:
            env.unlink(missing_ok=True)


def variables(server: LoopbackOneLake) -> dict[str, str]:
    """What a program needs to use the server, by the names of environment variables."""
    return server.environment() | {
        "MIRROR_ONELAKE_URL": server.new_item().url,
        "MIRROR_ONELAKE_CA": str(server.ca),
        "MIRROR_ONELAKE_TRUSTSTORE": str(server.truststore),
    }


def stopped_by_signals() -> threading.Event:
    """An event that Ctrl-C and a polite kill set."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _write(env: Path, values: Mapping[str, str]) -> None:
    """Write the file at once, for its owner only: there is a secret in it."""
    twin = env.with_name("env.new")
    twin.touch(mode=0o600)
    twin.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))
    twin.replace(env)
