"""Azure credentials by azure-identity: their kind is set in mirror.yaml, their secrets only in the environment."""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.storage.errors import CERTIFICATE_REFUSED, CREDENTIAL_INCOMPLETE, CREDENTIAL_UNFIT

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

TENANT, CLIENT, SECRET = "AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"
AUTHORITY, TOKEN_FILE = "AZURE_AUTHORITY_HOST", "AZURE_FEDERATED_TOKEN_FILE"
CERTIFICATE, CERTIFICATE_PASSWORD = "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_CLIENT_CERTIFICATE_PASSWORD"
_PUBLIC_AUTHORITY = "https://login.microsoftonline.com"


class CredentialKind(str, Enum):
    """How to obtain a token. `default` tries several ways: for development, not for production."""

    DEFAULT = "default"
    MANAGED_IDENTITY = "managed_identity"
    CLIENT_SECRET = "client_secret"  # noqa: S105 a kind
    WORKLOAD_IDENTITY = "workload_identity"
    CERTIFICATE = "certificate"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it requires."""
        if self is CredentialKind.CLIENT_SECRET:
            return (TENANT, CLIENT, SECRET)
        if self is CredentialKind.CERTIFICATE:
            return (TENANT, CLIENT, CERTIFICATE)
        return (TENANT, CLIENT, TOKEN_FILE) if self is CredentialKind.WORKLOAD_IDENTITY else ()


def credential_of(
    kind: CredentialKind, ca_bundle: Path | None = None, environment: Mapping[str, str] = os.environ
) -> TokenCredential:
    """Return the credential, which fetches a token on first use.

    Raises credential_incomplete, credential_unfit, and certificate_refused for a `ca_bundle` that can't be read.
    """
    missing = tuple(name for name in kind.variables if not environment.get(name))
    if missing:
        raise CREDENTIAL_INCOMPLETE(kind=kind.value, missing=missing)
    if ca_bundle:
        try:
            ssl.create_default_context(cafile=ca_bundle)
        except OSError as error:
            raise CERTIFICATE_REFUSED(
                where=str(ca_bundle), why=f"it has no readable authority ({error.strerror})"
            ) from error
    try:
        return _new_credential(kind, ca_bundle, environment)
    except (ValueError, OSError) as error:  # the certificate may be missing or invalid
        raise CREDENTIAL_UNFIT(kind=kind.value, why=str(error)) from error


def _new_credential(kind: CredentialKind, ca_bundle: Path | None, environment: Mapping[str, str]) -> TokenCredential:
    # Its warnings repeat the errors.
    logging.getLogger("azure.identity").setLevel(logging.ERROR)
    # The import takes longer than a command that needs no credential.
    from azure.identity import (
        CertificateCredential,
        ClientSecretCredential,
        DefaultAzureCredential,
        ManagedIdentityCredential,
        WorkloadIdentityCredential,
    )

    if kind is CredentialKind.MANAGED_IDENTITY:
        return ManagedIdentityCredential(client_id=environment.get(CLIENT))
    verify = {"connection_verify": str(ca_bundle)} if ca_bundle else {}
    authority = authority_of(environment)
    # Discovery would query Microsoft's public list for an authority that is not on it.
    known = {"disable_instance_discovery": authority != _PUBLIC_AUTHORITY, "authority": authority}
    if kind is CredentialKind.DEFAULT:
        return DefaultAzureCredential(**known, **verify)
    if kind is CredentialKind.WORKLOAD_IDENTITY:
        return WorkloadIdentityCredential(
            tenant_id=environment[TENANT],
            client_id=environment[CLIENT],
            token_file_path=environment[TOKEN_FILE],
            **known,
            **verify,
        )
    tenant, client = environment[TENANT], environment[CLIENT]
    if kind is CredentialKind.CERTIFICATE:
        password = environment.get(CERTIFICATE_PASSWORD)
        file = environment[CERTIFICATE]
        return CertificateCredential(tenant, client, file, password=password, **known, **verify)
    return ClientSecretCredential(tenant, client, environment[SECRET], **known, **verify)


def authority_of(environment: Mapping[str, str] = os.environ) -> str:
    """Return the URL of the authority that issues tokens, without a slash at its end."""
    return (environment.get(AUTHORITY) or _PUBLIC_AUTHORITY).rstrip("/")
