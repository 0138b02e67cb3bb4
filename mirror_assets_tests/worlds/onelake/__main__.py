"""The server as a program, for trying things out: `make onelake`."""

from __future__ import annotations

import argparse
import shlex
import signal
import threading
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


def main() -> None:
    """Serve until Ctrl-C or SIGTERM. `env` in the folder is there as long as the server listens."""
    parser = argparse.ArgumentParser(prog="onelake", description="A loopback OneLake on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=0, help="where to listen (default: any free port)")
    parser.add_argument("--folder", type=Path, default=Path(".onelake"), help="for ca.pem and env (default: .onelake)")
    options = parser.parse_args()
    stop, folder = threading.Event(), options.folder.absolute()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with LoopbackOneLake(folder, options.port) as server:
        try:
            _write_variables(folder / "env", server)
            print(_NEXT.format(url=server.url, env=folder / "env"), flush=True)  # noqa: T201 a program for people
            stop.wait()
        finally:
            (folder / "env").unlink(missing_ok=True)


def _write_variables(env: Path, server: LoopbackOneLake) -> None:
    """Write the file at once, for its owner only: there is a secret in it."""
    values = server.environment() | {
        "MIRROR_ONELAKE_URL": server.new_item().url,
        "MIRROR_ONELAKE_CA": str(server.ca),
        "MIRROR_ONELAKE_TRUSTSTORE": str(server.truststore),
    }
    twin = env.with_name("env.new")
    twin.touch(mode=0o600)
    twin.write_text("".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items()))
    twin.replace(env)


if __name__ == "__main__":
    main()
