"""Trust: for the server's certificate alone, in Python and on the JVM."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from azure.core.exceptions import ServiceRequestError

from mirror_assets_tests.worlds.onelake import LoopbackItem, LoopbackOneLake
from mirror_assets_tests.worlds.onelake.certificates import TRUSTSTORE_PASSWORD, Authority


def test_who_does_not_trust_the_authority_sends_nothing(
    onelake: LoopbackOneLake, item: LoopbackItem, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path).ca
    with onelake.service(connection_verify=str(stranger)) as service, pytest.raises(ServiceRequestError, match="CERT"):
        service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file").create_file()
    assert onelake.log.storage == ()


def test_the_truststore_holds_the_authority_beside_the_jdks(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listed = _listed(authority.truststore())
    assert "PKCS12" in listed
    assert "loopback-onelake" in listed
    assert listed.count("trustedCertEntry") > 1


def test_a_new_authority_leaves_no_truststore_of_another(tmp_path: Path) -> None:
    stale = tmp_path / "truststore.p12"
    stale.write_bytes(b"stale")
    Authority(tmp_path)
    assert not stale.exists()


def _listed(truststore: Path) -> str:
    command = ["keytool", "-list", "-keystore", str(truststore), "-storepass", TRUSTSTORE_PASSWORD]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
