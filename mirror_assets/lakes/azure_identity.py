"""Azure identities: azure-identity's credentials, and Spark's access by settings of hadoop-azure's abfs driver.

Their kind is set in mirror.yaml, their secrets only in the environment. For Spark, an identity is set for one container
of one host, so that containers of one account may have different ones, of the same kind. Hadoop inserts secrets when it
reads a setting, so no Spark setting has one.
"""

from __future__ import annotations

import logging
import os
import ssl
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from mirror_assets.lakes.errors import CERTIFICATE_REFUSED, CREDENTIAL_INCOMPLETE, CREDENTIAL_UNFIT

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

    Raises CREDENTIAL_INCOMPLETE, CREDENTIAL_UNFIT, and CERTIFICATE_REFUSED for a `ca_bundle` that can't be read.
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


# Without a version: it is that of the Hadoop that Spark brings.
HADOOP_AZURE = "org.apache.hadoop:hadoop-azure"
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"


def abfs_settings(
    host: str, kind: CredentialKind, container: str | None = None, env_prefix: str = ""
) -> dict[str, str]:
    """Return Hadoop's settings by name; they name environment variables, which executors need too.

    They are for one container of the host, or for all. `env_prefix` is the prefix of the variables' names.
    """
    return oauth_settings(host, container, *_identity(kind, env_prefix))


def oauth_settings(host: str, container: str | None, provider: str, identity: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings by name for the tokens of a provider, which is a class of the driver."""
    of_account = {"account.auth.type": "OAuth", "account.oauth.provider.type": f"{_OAUTH}.{provider}"}
    of_container = {f"account.oauth2.{name}": value for name, value in identity.items()}
    return named(of_account, host) | named(of_container, f"{container}.{host}" if container else host)


def named(settings: Mapping[str, str], of: str) -> dict[str, str]:
    """Return the settings by their names for an account's host, or for a container of it.

    The driver has settings by container only for identities: ids, secrets, endpoints, files with tokens.
    """
    return {f"fs.azure.{name}.{of}": value for name, value in settings.items()}


def onelake_settings(host: str) -> dict[str, str]:
    """Return the driver's settings for OneLake."""
    # It recovers a rename whose reply was lost by the file's ETag, which needs no support by the service.
    return named({"account.hns.enabled": "true", "enable.client.transaction.id": "false"}, host)


def variable(name: str, default: str | None = None) -> str:
    """Return Hadoop's spelling of an environment variable."""
    return f"${{env.{name}}}" if default is None else f"${{env.{name}:-{default}}}"


def _identity(kind: CredentialKind, prefix: str) -> tuple[str, dict[str, str]]:
    """Return the class that fetches tokens, and its settings."""
    tenant, client = variable(prefix + TENANT), variable(prefix + CLIENT)
    if kind is CredentialKind.CLIENT_SECRET:
        authority = variable(prefix + AUTHORITY, _PUBLIC_AUTHORITY)
        secret = {"client.id": client, "client.secret": variable(prefix + SECRET)}
        return "ClientCredsTokenProvider", {"client.endpoint": f"{authority}/{tenant}/oauth2/token", **secret}
    if kind is CredentialKind.WORKLOAD_IDENTITY:
        file = {"client.id": client, "token.file": variable(prefix + TOKEN_FILE)}
        return "WorkloadIdentityTokenProvider", {"msi.tenant": tenant, **file}
    return "MsiTokenProvider", {"client.id": variable(prefix + CLIENT, "")}
