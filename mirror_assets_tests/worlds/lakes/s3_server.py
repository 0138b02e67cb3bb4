"""S3, STS and IAM on this machine, by moto: signatures are checked, requests are recorded, faults can be planted."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import boto3
from moto import settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from typing_extensions import Self
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wrappers import Request, Response

from mirror_assets.lakes.lake_store import LakeAddress
from mirror_assets.lakes.s3 import AwsCredential, S3Store

REGION, BUCKET = "eu-central-1", "acme-lake"
# What stands before the names of the keys' variables: not the names that AWS's tools read by themselves.
PREFIX = "LAKE_"
_ALL = {"Effect": "Allow", "Action": ["s3:*", "sts:*"], "Resource": "*"}
_TRUST = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole", "Resource": "*"}
_KEY = re.compile(r"Credential=([^/]+)/")
_App = Callable[..., Iterable[bytes]]


@dataclass(frozen=True)
class Keys:
    """An access key of a user."""

    key: str
    secret: str

    def environment(self, prefix: str = "") -> dict[str, str]:
        """Return the variables that AWS's tools read, with a prefix before their names."""
        return {f"{prefix}AWS_ACCESS_KEY_ID": self.key, f"{prefix}AWS_SECRET_ACCESS_KEY": self.secret}


@dataclass(frozen=True)
class S3Request:
    """A request that the server has answered: the key that signed it, and the status of the answer."""

    method: str
    path: str
    access_key: str
    status: int


@dataclass
class S3Server:
    """A server on a free port. `keys` are those of its only user; without them nothing is answered.

    `requests` are `METHOD /bucket/key` of all requests since `forget`. `fault` may answer a request in moto's place.
    """

    requests: list[str] = field(default_factory=list)
    seen: list[S3Request] = field(default_factory=list)
    fault: Callable[[Request], Response | None] = lambda _: None

    def __enter__(self) -> Self:
        moto: _App = DomainDispatcherApplication(create_backend_app)
        self._server: BaseWSGIServer = make_server("127.0.0.1", 0, self._recorded(moto), threaded=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._before = settings.INITIAL_NO_AUTH_ACTION_COUNT
        self.keys, self.role = self._user("lake"), self._role("reader")
        settings.INITIAL_NO_AUTH_ACTION_COUNT, ActionAuthenticatorMixin.request_count = 0, 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        settings.INITIAL_NO_AUTH_ACTION_COUNT = self._before
        self._server.shutdown()

    def forget(self) -> None:
        """Begin the record of requests anew, without faults."""
        self.requests.clear()
        self.seen.clear()
        self.fault = lambda _: None

    def bucket(self, name: str) -> str:
        self.client("s3").create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        return f"s3://{name}"

    def put(self, bucket: str, key: str, data: bytes) -> None:
        self.client("s3").put_object(Bucket=bucket, Key=key, Body=data)

    def read(self, bucket: str, key: str) -> bytes:
        data: bytes = self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
        return data

    def delete(self, bucket: str, key: str) -> None:
        self.client("s3").delete_object(Bucket=bucket, Key=key)

    def objects(self, bucket: str, prefix: str = "") -> list[str]:
        """Return the keys of a bucket's objects below a prefix."""
        pages = self.client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    @property
    def options(self) -> dict[str, str]:
        """The options with which deltalake writes tables here."""
        named = {"aws_access_key_id": self.keys.key, "aws_secret_access_key": self.keys.secret}
        return {**named, "aws_region": REGION, "aws_endpoint_url": self.url, "aws_allow_http": "true"}

    def spark_settings(self) -> dict[str, str]:
        """Return what a Spark session needs to use the bucket; its JVM starts with the keys' environment."""
        address = LakeAddress.parse(f"s3://{BUCKET}")
        store = S3Store(address, AwsCredential.ENVIRONMENT, REGION, self.url, env_prefix=PREFIX)
        return {f"spark.hadoop.{name}": value for name, value in store.hadoop_settings().items()}

    def client(self, service: str) -> Any:  # noqa: ANN401 boto3 has no types
        keys = getattr(self, "keys", Keys("root", "root"))
        named = {"aws_access_key_id": keys.key, "aws_secret_access_key": keys.secret}
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, **named)

    def user_of(self, bucket: str) -> Keys:
        """Make a user who may read and write one bucket alone."""
        there = {**_ALL, "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"]}
        with _trusting():
            return self._user(f"user-of-{bucket}", there)

    def role_of(self, name: str, statement: Mapping[str, object]) -> str:
        """Make a role that anybody may assume, and return its name for AWS."""
        with _trusting():
            return self._role(name, statement)

    def _user(self, name: str, statement: Mapping[str, object] = _ALL) -> Keys:
        iam = self.client("iam")
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=_policy(statement))
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return Keys(made["AccessKeyId"], made["SecretAccessKey"])

    def _role(self, name: str, statement: Mapping[str, object] = _ALL) -> str:
        iam = self.client("iam")
        arn: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(_TRUST))["Role"]["Arn"]
        iam.put_role_policy(RoleName=name, PolicyName="all", PolicyDocument=_policy(statement))
        return arn

    def _recorded(self, app: _App) -> _App:
        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            request = Request(environ)
            query = f"?{request.query_string.decode()}" if request.query_string else ""
            self.requests.append(f"{request.method} {request.path}{query}")
            planted = self.fault(request)
            key = _KEY.search(request.headers.get("Authorization", ""))

            def noted(status: str, *rest: Any) -> Any:  # noqa: ANN401 passed on
                self.seen.append(S3Request(request.method, request.path, key[1] if key else "", int(status[:3])))
                return start(status, *rest)

            return planted(environ, noted) if planted is not None else app(environ, noted)

        return answer


@contextmanager
def _trusting() -> Iterator[None]:
    """Answer anybody within the block: users and roles are made by nobody in particular."""
    settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
    try:
        yield
    finally:
        settings.INITIAL_NO_AUTH_ACTION_COUNT, ActionAuthenticatorMixin.request_count = 0, 0


def _policy(statement: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
