"""How Spark reaches OneLake: settings of hadoop-azure's abfs driver, for this one host.

Secrets stay in the environment: Hadoop puts them in when it reads a setting, so no Spark setting holds one.
"""

from __future__ import annotations

from mirror_assets.storage.credentials import AUTHORITY, CLIENT, SECRET, TENANT, TOKEN_FILE, CredentialKind
from mirror_assets.storage.onelake.address import OneLakeAddress

# The hadoop-azure that fits the Hadoop that pyspark brings.
HADOOP_AZURE = "org.apache.hadoop:hadoop-azure:3.5.0"
_PROVIDERS = "org.apache.hadoop.fs.azurebfs.oauth2"
_PUBLIC_AUTHORITY = "https://login.microsoftonline.com"


def abfs_settings(address: OneLakeAddress, kind: CredentialKind) -> dict[str, str]:
    """Spark settings by name. They name environment variables, which executors need too."""
    account = {
        "account.auth.type": "OAuth",
        "account.hns.enabled": "true",
        # Recover a rename whose reply was lost by the file's ETag, which needs nothing of the service.
        "enable.client.transaction.id": "false",
        **{f"account.oauth{name}": value for name, value in _identity(kind).items()},
    }
    return {f"spark.hadoop.fs.azure.{name}.{address.host}": value for name, value in account.items()}


def _identity(kind: CredentialKind) -> dict[str, str]:
    if kind is CredentialKind.CLIENT_SECRET:
        return {
            ".provider.type": f"{_PROVIDERS}.ClientCredsTokenProvider",
            "2.client.endpoint": f"{_variable(AUTHORITY, _PUBLIC_AUTHORITY)}/{_variable(TENANT)}/oauth2/token",
            "2.client.id": _variable(CLIENT),
            "2.client.secret": _variable(SECRET),
        }
    if kind is CredentialKind.WORKLOAD_IDENTITY:
        return {
            ".provider.type": f"{_PROVIDERS}.WorkloadIdentityTokenProvider",
            "2.msi.tenant": _variable(TENANT),
            "2.client.id": _variable(CLIENT),
            "2.token.file": _variable(TOKEN_FILE),
        }
    return {".provider.type": f"{_PROVIDERS}.MsiTokenProvider", "2.client.id": _variable(CLIENT, "")}


def _variable(name: str, default: str | None = None) -> str:
    """Hadoop's spelling of an environment variable."""
    return f"${{env.{name}}}" if default is None else f"${{env.{name}:-{default}}}"
