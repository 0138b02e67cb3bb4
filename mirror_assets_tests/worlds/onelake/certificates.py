"""A certificate authority of one's own, for clients in Python and on the JVM."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import trustme

# Java's own password for stores of certificates: what is in there is public.
TRUSTSTORE_PASSWORD = "changeit"  # noqa: S105 see above


class Authority:
    """A new authority; `ca` is the file that clients in Python have to trust."""

    def __init__(self, folder: Path) -> None:
        self._authority = trustme.CA()
        self.ca = folder / "ca.pem"
        folder.mkdir(parents=True, exist_ok=True)
        self._authority.cert_pem.write_to_path(self.ca)
        self._truststore = folder / "truststore.p12"
        self._truststore.unlink(missing_ok=True)  # an earlier authority's

    def server_context(self) -> ssl.SSLContext:
        """What a server on this machine needs to prove that it is one."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
        return context

    def server_pem(self) -> Path:
        """The same for a server in a process of its own: a file with its key and certificate, beside `ca`."""
        file = self.ca.with_name("server.pem")
        self._authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(file)
        return file

    def truststore(self) -> Path:
        """A store beside `ca` for JVMs, made by the JDK's keytool: this authority and those that the JDK trusts anyway.

        Without the latter, a JVM that uses it could not download Spark's packages.
        """
        if not self._truststore.exists():
            _make(self._truststore, self.ca)
        return self._truststore


def _make(truststore: Path, certificate: Path) -> None:
    keytool, password = _keytool(), TRUSTSTORE_PASSWORD
    trusted = keytool.resolve().parents[1] / "lib" / "security" / "cacerts"
    if trusted.exists():
        into = ("-destkeystore", truststore, "-deststoretype", "PKCS12", "-deststorepass", password)
        _run(keytool, "-importkeystore", "-srckeystore", trusted, "-srcstorepass", password, *into)
    into = ("-keystore", truststore, "-storetype", "PKCS12", "-storepass", password)
    _run(keytool, "-importcert", "-alias", "loopback-onelake", "-file", certificate, *into)


def _run(keytool: Path, command: str, *options: str | Path) -> None:
    subprocess.run([keytool, command, "-noprompt", *options], check=True, capture_output=True, timeout=60)


def _keytool() -> Path:
    """The keytool of JAVA_HOME, else of the path; it comes with the runtime that Spark needs anyway."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("keytool", path=f"{home}/bin" if home else None)
    if found is None:
        raise FileNotFoundError("keytool: install a Java runtime, or set JAVA_HOME")
    return Path(found)
