"""`make onelake`: what it writes is all that the real clients need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

_CLIENT = """\
import os, sys
from azure.identity import EnvironmentCredential
from azure.storage.filedatalake import DataLakeServiceClient
url, ca = os.environ["MIRROR_ONELAKE_URL"], os.environ["MIRROR_ONELAKE_CA"]
endpoint, _, path = url.rpartition("/")[0].rpartition("/")[0].partition("//")[2].partition("/")
credential = EnvironmentCredential(disable_instance_discovery=True, connection_verify=ca)
service = DataLakeServiceClient(f"https://{endpoint}", credential=credential, connection_verify=ca)
workspace, item = path.split("/")
file = service.get_file_client(workspace, f"{item}/Files/LandingZone/file")
file.upload_data(b"data", overwrite=True)
sys.stdout.write(file.download_file().readall().decode())
"""


def test_a_shell_that_sources_env_can_use_the_server(tmp_path: Path) -> None:
    env = tmp_path / "env"
    command = [sys.executable, "-m", "mirror_assets_tests.worlds.onelake", "--folder", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            deadline = time.monotonic() + 30
            while not env.exists() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert env.stat().st_mode & 0o077 == 0
            script = 'source "$0" && exec "$1" -c "$2"'
            client = ["bash", "-c", script, str(env), sys.executable, _CLIENT]
            done = subprocess.run(
                client, check=False, capture_output=True, text=True, timeout=60, env=_bare_environment()
            )
        finally:
            server.send_signal(signal.SIGINT)
            shown, _ = server.communicate(timeout=30)
    assert (done.stdout, done.returncode) == ("data", 0), done.stderr
    assert f"source {env}" in shown
    assert server.returncode == 0
    assert not env.exists()


def _bare_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "MIRROR_"))}
