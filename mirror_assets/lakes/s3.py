"""Buckets of S3, and of servers that speak its protocol, and AWS keys that expire and are fetched again.

botocore fetches keys of a profile, a web identity, an instance, or an assumed role. deltalake and obstore have
providers of their own for some of these kinds, but deltalake's would fetch keys for each table that it opens, and takes
no provider written in Python.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from mirror_assets.lakes.azure_identity import variable
from mirror_assets.lakes.errors import CREDENTIAL_INCOMPLETE, PACKAGE_MISSING, aws_identity_unfit
from mirror_assets.lakes.lake_store import LakeStore, prefixed

# botocore's names of the providers of a credential.
_BOTOCORE = {"web_identity": ("assume-role-with-web-identity",), "instance": ("container-role", "iam-role")}


@cache
def _botocore_credentials(kind: str, profile: str | None, role: str | None, region: str | None, env_prefix: str) -> Any:  # noqa: ANN401 botocore has no types
    """Return credentials that botocore refreshes before they expire, one set for the process."""
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials, EnvProvider
    from botocore.session import Session

    session = Session(profile=profile)
    if kind == "environment":
        names = {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY", "token": "AWS_SESSION_TOKEN"}
        variables = {name: env_prefix + variable for name, variable in names.items()}
        found = EnvProvider(os.environ, variables).load()
    elif kind in _BOTOCORE:
        resolver = session.get_component("credential_provider")
        found = next(filter(None, (resolver.get_provider(name).load() for name in _BOTOCORE[kind])), None)
    else:
        found = session.get_credentials()
    if found is None:
        raise aws_identity_unfit(kind, role, "this machine has none")
    if role is None:
        return found
    client, named = partial(session.create_client, region_name=region), {"RoleSessionName": "mirror-assets"}
    fetcher = AssumeRoleCredentialFetcher(client, found, role, extra_args=named)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


# Without a version: it is that of the Hadoop that Spark brings.
HADOOP_AWS = "org.apache.hadoop:hadoop-aws"
KEY, SECRET, TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_PROVIDER = "aws.credentials.provider"
_S3A = "org.apache.hadoop.fs.s3a"
_SDK = "software.amazon.awssdk.auth.credentials"


class AwsCredential(str, Enum):
    """The identity that reads a bucket. `default` tries several ones, as AWS's own tools do."""

    DEFAULT = "default"
    ENVIRONMENT = "environment"
    PROFILE = "profile"
    WEB_IDENTITY = "web_identity"
    INSTANCE = "instance"
    ANONYMOUS = "anonymous"


# Each call of Hadoop would wait some ten minutes for a host that does not answer, and hours for a store that throttles.
# A slice that fails is retried after a pause. Within `request.timeout`, AWS's SDK tries several times; an
# `establish.timeout` below 15 s is ignored.
_PATIENCE = {
    "connection.establish.timeout": "15s",
    "connection.request.timeout": "15s",
    "connection.timeout": "60s",
    "retry.limit": "1",
    "retry.throttle.limit": "6",
}
_PROVIDERS = {
    AwsCredential.DEFAULT: f"{_SDK}.DefaultCredentialsProvider",
    AwsCredential.PROFILE: f"{_S3A}.auth.ProfileAWSCredentialsProvider",
    AwsCredential.WEB_IDENTITY: f"{_SDK}.WebIdentityTokenFileCredentialsProvider",
    AwsCredential.INSTANCE: f"{_S3A}.auth.IAMInstanceCredentialsProvider",
    AwsCredential.ANONYMOUS: f"{_S3A}.AnonymousAWSCredentialsProvider",
}


@dataclass(frozen=True)
class S3Store(LakeStore):
    """A bucket, or a folder of one.

    `role` is the ARN of a role to assume with the credential. `env_prefix` is the prefix of the environment variables
    with the keys, for a second account. `region` and `endpoint` are by default those of the environment.
    """

    credential: AwsCredential = AwsCredential.DEFAULT
    region: str | None = None
    endpoint: str | None = None
    path_style: bool | None = None
    profile: str | None = None
    role: str | None = None
    env_prefix: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)

    packages = (HADOOP_AWS,)

    def storage_options(self) -> dict[str, str]:
        """Return deltalake's options. Raises CREDENTIAL_INCOMPLETE, and what `_fetched_keys` raises."""
        endpoint = self._endpoint
        named = {
            "aws_region": self._region,
            "aws_endpoint_url": endpoint,
            "aws_virtual_hosted_style_request": None if self._is_path_style else "true",
            "aws_allow_http": "true" if endpoint and endpoint.startswith("http://") else None,
        }
        return {name: value for name, value in named.items() if value} | self._keys()

    def hadoop_settings(self) -> dict[str, str]:
        """Return the settings of this bucket alone, by its name."""
        endpoint = self._endpoint
        named = {
            "endpoint.region": self._region,
            "endpoint": endpoint,
            "path.style.access": "true" if self._is_path_style else None,
            "connection.ssl.enabled": "false" if endpoint and endpoint.startswith("http://") else None,
            **_PATIENCE,
            **self._provider(),
        }
        own = {f"{self._bucket}{name}": value for name, value in named.items() if value}
        return {f"fs.{scheme}.impl": f"{_S3A}.S3AFileSystem" for scheme in ("s3", "s3n")} | own

    def with_keys(self, variables: Mapping[str, str]) -> S3Store:
        """Return the store with vended keys."""
        known = {**self.environment, **{self.env_prefix + name: value for name, value in variables.items()}}
        return replace(self, credential=AwsCredential.ENVIRONMENT, profile=None, role=None, environment=known)

    def reach_settings(self) -> dict[str, str]:
        """Return the settings of this bucket without an identity."""
        settings = replace(self, credential=AwsCredential.ANONYMOUS, profile=None, role=None).hadoop_settings()
        identity = self.own_names().values()
        return {n: value for n, value in settings.items() if n.startswith(self._bucket) and n not in identity}

    def own_names(self) -> dict[str, str]:
        """Return the setting of the identity by bucket."""
        return {f"fs.s3a.{_PROVIDER}": f"{self._bucket}{_PROVIDER}"}

    @property
    def _bucket(self) -> str:
        return f"fs.s3a.bucket.{self.root.container}."

    @property
    def _named(self) -> dict[str, str]:
        return prefixed(self.env_prefix, self.environment)

    @property
    def _region(self) -> str | None:
        return self.region or next(filter(None, map(self._named.get, _REGIONS)), None)

    @property
    def _endpoint(self) -> str | None:
        return self.endpoint or next(filter(None, map(self._named.get, _ENDPOINTS)), None)

    @property
    def _is_path_style(self) -> bool:
        """Servers other than AWS rarely have a host name for each bucket."""
        if self.path_style is not None:
            return self.path_style
        return self._endpoint is not None and ".amazonaws.com" not in self._endpoint

    def _keys(self) -> dict[str, str]:
        if self.credential is AwsCredential.ANONYMOUS:
            return {"aws_skip_signature": "true"}
        if self.credential is AwsCredential.DEFAULT and not self.role:
            return {}
        if self.role or self.credential in (AwsCredential.PROFILE, AwsCredential.WEB_IDENTITY, AwsCredential.INSTANCE):
            keys = self._fetched_keys()
        else:
            keys = {name: self._named.get(name) for name in (KEY, SECRET, TOKEN)}
            missing = tuple(self.env_prefix + name for name in (KEY, SECRET) if not keys[name])
            if missing:
                raise CREDENTIAL_INCOMPLETE(kind=self.credential.value, missing=missing)
        # deltalake's names are those of the environment in lower case.
        return {name.lower(): value for name, value in keys.items() if value}

    def _fetched_keys(self) -> dict[str, str | None]:
        """Return keys that are valid now.

        Raises PACKAGE_MISSING without botocore, and aws_identity_unfit if it finds no credential.
        """
        try:
            from botocore.exceptions import BotoCoreError, ClientError
        except ImportError as error:
            raise PACKAGE_MISSING(package="botocore", extra="s3") from error
        kind = self.credential.value
        try:
            found = _botocore_credentials(kind, self.profile, self.role, self._region, self.env_prefix)
            keys = found.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise aws_identity_unfit(kind, self.role, str(error)) from error
        return {KEY: keys.access_key, SECRET: keys.secret_key, TOKEN: keys.token}

    def _provider(self) -> dict[str, str]:
        """Return Hadoop's settings of the identity; keys are references to variables, which need not be set yet."""
        if self.credential is AwsCredential.ENVIRONMENT:
            names, kind = {"access.key": KEY, "secret.key": SECRET}, "SimpleAWSCredentialsProvider"
            if self._named.get(TOKEN):
                names["session.token"], kind = TOKEN, "TemporaryAWSCredentialsProvider"
            own = {name: variable(self.env_prefix + of) for name, of in names.items()}
            provider = f"{_S3A}.{kind}"
        else:
            own = {"auth.profile.name": self.profile or ""} if self.credential is AwsCredential.PROFILE else {}
            provider = _PROVIDERS[self.credential]
        if self.role is None:
            return {**own, _PROVIDER: provider}
        settings = {
            **own,
            _PROVIDER: f"{_S3A}.auth.AssumedRoleCredentialProvider",
            "assumed.role.credentials.provider": provider,
            "assumed.role.arn": self.role,
        }
        # Hadoop takes the host of the token service, which it calls by https, and no port.
        service = urlsplit(self.environment.get("AWS_ENDPOINT_URL_STS", ""))
        if service.hostname and not service.port:
            settings["assumed.role.sts.endpoint"] = service.hostname
            settings["assumed.role.sts.endpoint.region"] = self._region or ""
        return settings
