"""Keys of AWS that end, and are fetched again: of a profile, a web identity, an instance, or an assumed role."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from mirror_assets.storage.lake.errors import aws_identity_unfit, package_missing

# botocore's names of the ways to a credential.
_PROVIDERS = {"web_identity": ("assume-role-with-web-identity",), "instance": ("container-role", "iam-role")}


class Keys(Protocol):
    """Keys as botocore hands them out."""

    access_key: str
    secret_key: str
    token: str | None


class _Credentials(Protocol):
    def get_frozen_credentials(self) -> Keys: ...


class _Session(Protocol):
    def get_credentials(self) -> _Credentials | None: ...

    def get_component(self, name: str) -> _Resolver: ...

    def create_client(self, service: str, region_name: str | None = None) -> object: ...


class _Resolver(Protocol):
    def get_provider(self, name: str) -> _Provider: ...


class _Provider(Protocol):
    def load(self) -> _Credentials | None: ...


@dataclass(frozen=True)
class AwsIdentity:
    """Who asks AWS: the kind of a credential, and with `role` the ARN of the role that it assumes."""

    kind: str
    profile: str | None = None
    role: str | None = None
    region: str | None = None
    env_prefix: str = ""

    def keys(self) -> Keys:
        """Return keys that are valid now. botocore fetches new ones before they end; one process keeps one set.

        Raises package_missing without botocore, and aws_identity_unfit where it finds no credential.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            return _credentials(self).get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:
            raise aws_identity_unfit(self.kind, self.role, str(error)) from error


@cache
def _credentials(identity: AwsIdentity) -> _Credentials:
    session, found = _session(identity.profile), None
    if identity.kind == "environment":
        found = _from_environment(identity.env_prefix)
    elif identity.kind in _PROVIDERS:
        resolver = session.get_component("credential_provider")
        found = next(filter(None, (resolver.get_provider(name).load() for name in _PROVIDERS[identity.kind])), None)
    else:
        found = session.get_credentials()
    if found is None:
        raise aws_identity_unfit(identity.kind, identity.role, "there is none on this machine")
    return found if identity.role is None else _assumed(session, found, identity.role, identity.region)


def _session(profile: str | None) -> _Session:
    try:
        from botocore.session import Session
    except ImportError as error:
        raise package_missing("botocore", "s3") from error
    session: _Session = Session(profile=profile)
    return session


def _from_environment(prefix: str, environment: Mapping[str, str] = os.environ) -> _Credentials | None:
    from botocore.credentials import EnvProvider

    names = {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY", "token": "AWS_SESSION_TOKEN"}
    found: _Credentials | None = EnvProvider(environment, {name: prefix + of for name, of in names.items()}).load()
    return found


def _assumed(session: _Session, source: _Credentials, role: str, region: str | None) -> _Credentials:
    from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

    client: Callable[..., object] = partial(session.create_client, region_name=region)
    fetcher = AssumeRoleCredentialFetcher(client, source, role, extra_args={"RoleSessionName": "mirror-assets"})
    credentials: _Credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
    return credentials
