"""`mirror-assets direct-lake` on a table in OneLake, signed in as azure-identity finds out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from stat import S_IXUSR

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import mirror_assets
from mirror_assets.cli.exit import Exit
from mirror_assets_tests.worlds.onelake import LoopbackOneLake

_COMMAND = "import sys; from mirror_assets.cli.main import main; sys.exit(main())"
_AZ = """\
#!/bin/sh
cat <<END
{
  "accessToken": "%s",
  "expiresOn": "2096-10-02 07:06:40.000000",
  "expires_on": 4000000000,
  "subscription": "a subscription",
  "tenant": "a tenant",
  "tokenType": "Bearer"
}
END
"""


@pytest.fixture
def table(onelake: LoopbackOneLake, tmp_path: Path) -> str:
    """The URI of a table of two commits, the second an overwrite."""
    local, item = tmp_path / "orders", onelake.new_item()
    write_deltalake(local, pa.table({"id": range(20)}))
    write_deltalake(local, pa.table({"id": range(5)}), mode="overwrite")
    for file in local.rglob("*.*"):
        item.write(f"orders/{file.relative_to(local)}", file.read_bytes())
    return f"abfss://{item.workspace}@onelake.dfs.fabric.microsoft.com/{item.guid}/Files/LandingZone/orders"


def _run(onelake: LoopbackOneLake, variables: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with these variables of Azure's, the server in OneLake's place."""
    here = {name: text for name, text in os.environ.items() if not name.startswith("AZURE_")}
    here |= {"PYTHONPATH": str(Path(mirror_assets.__file__).parents[1]), "SSL_CERT_FILE": str(onelake.ca)}
    here |= {"AZURE_STORAGE_ENDPOINT": onelake.url, **variables}
    command = [sys.executable, "-c", _COMMAND, "direct-lake", *arguments]
    return subprocess.run(command, env=here, capture_output=True, text=True, check=False, timeout=60)


def test_a_service_principal_reads_a_table_in_onelake(onelake: LoopbackOneLake, table: str, tmp_path: Path) -> None:
    signed_in, cache = onelake.environment(), ("--cache", str(tmp_path / "cache"))
    done = _run(onelake, signed_in, "report", table, "--json", *cache)
    assert done.returncode == Exit.FINE, done.stderr
    (report,) = json.loads(done.stdout)
    assert (report["uri"], report["version"], report["layout"]["rows"]) == (table, 1, 5)
    done = _run(onelake, signed_in, "vacuum-plan", table, "--frame", "0", "--retain-hours", "0")
    assert (done.returncode, "frame v0" in done.stdout) == (Exit.FAILED, True), done.stderr
    done = _run(onelake, signed_in, "guardrails", table, "--sku", "F2", *cache)
    assert (done.returncode, "as a model" in done.stdout) == (Exit.FINE, True), done.stderr


def test_a_token_or_the_azure_cli_signs_in_too(onelake: LoopbackOneLake, table: str, tmp_path: Path) -> None:
    token = onelake.credential().get_token("https://storage.azure.com/.default").token
    az = tmp_path / "bin" / "az"
    az.parent.mkdir()
    az.write_text(_AZ % token)
    az.chmod(az.stat().st_mode | S_IXUSR)
    by_cli = {"PATH": f"{az.parent}:{os.environ['PATH']}"}
    for variables in ({"AZURE_STORAGE_TOKEN": token}, by_cli):
        done = _run(onelake, variables, "guardrails", table, "--no-cache")
        assert done.returncode == Exit.FINE, done.stderr


def test_a_wrong_secret_is_a_setting(onelake: LoopbackOneLake, table: str) -> None:
    done = _run(onelake, onelake.environment() | {"AZURE_CLIENT_SECRET": "wrong"}, "report", table)
    assert done.returncode == Exit.BAD_SETTING, done.stderr
    root = table.partition("/Files")[0].rpartition("/")[0]
    assert f"{root} could not be reached as this identity" in done.stderr
    assert "(for a source, `credential` in `stores`)" in done.stderr
    assert "wrong" not in done.stderr
