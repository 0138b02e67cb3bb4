"""Spark's access to containers of Azure and workspaces of OneLake: settings of hadoop-azure's abfs driver.

An identity is set for one container of one host, so that containers of one account may have different ones, of the same
kind. Secrets stay in the environment: Hadoop inserts them when it reads a setting, so no Spark setting has one.
"""

from __future__ import annotations

from collections.abc import Mapping

from mirror_assets.storage.credentials import AUTHORITY, CLIENT, SECRET, TENANT, TOKEN_FILE, CredentialKind

# Without a version: it is that of the Hadoop that Spark brings.
HADOOP_AZURE = "org.apache.hadoop:hadoop-azure"
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2"
_PUBLIC_AUTHORITY = "https://login.microsoftonline.com"


def abfs_settings(
    host: str, kind: CredentialKind, container: str | None = None, env_prefix: str = ""
) -> dict[str, str]:
    """Return Hadoop's settings by name; they name environment variables, which executors need too.

    They are for one container of the host, or for all. `env_prefix` is the prefix of the variables' names.
    """
    return _oauth_settings(host, container, *_identity(kind, env_prefix))


def msi_settings(host: str, container: str, identity: Mapping[str, str]) -> dict[str, str]:
    """Return Hadoop's settings by name for the tokens of a managed identity's endpoint."""
    return _oauth_settings(host, container, "MsiTokenProvider", identity)


def _oauth_settings(host: str, container: str | None, provider: str, identity: Mapping[str, str]) -> dict[str, str]:
    of_account = {"account.auth.type": "OAuth", "account.oauth.provider.type": f"{_PROVIDERS}.{provider}"}
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
