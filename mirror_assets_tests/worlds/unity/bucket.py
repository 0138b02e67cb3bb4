"""A bucket of moto's S3 that checks signatures and policies, and keys for single tables in it, which end on time."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar
from urllib.request import Request, urlopen

import boto3
from typing_extensions import Self

from mirror_assets_tests.worlds.unity.s3_process import CONTROL
from mirror_assets_tests.worlds.unity.server import Table

REGION, NAME, ACCOUNT = "eu-central-1", "acme-lake", "123456789012"
_GRACE = 2.0
_READING = ("s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation", "s3:HeadObject")


@dataclass(frozen=True)
class S3Request:
    """A request that the bucket has seen: the key that signed it, and the status of the answer."""

    method: str
    path: str
    access_key: str
    status: int


@dataclass
class LoopbackBucket:
    """The server and its one bucket; `with` starts and stops it. `lifetime`: seconds for which vended keys are good."""

    lifetime: float = 3600.0
    roles: set[str] = field(default_factory=set)
    _allowed: ClassVar[dict[str, Any]] = {"Effect": "Allow", "Action": "*", "Resource": "*"}

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "mirror_assets_tests.worlds.unity.s3_process"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self._open()
        self._say("check")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        with self._process:
            pass

    def reset(self) -> None:
        """Keys last an hour, nothing is slow, and nothing has been asked."""
        self.lifetime = 3600.0
        self.slow("$^", 0)
        self.requests()

    def requests(self) -> list[S3Request]:
        """Return what has been asked of the bucket since the last call."""
        found = (S3Request(*asked) for asked in self._say("requests"))
        return [asked for asked in found if asked.path.startswith(f"/{NAME}")]

    def slow(self, pattern: str, seconds: float) -> None:
        self._say("slow", pattern=pattern, seconds=seconds)

    def revoke(self, access_key: str) -> None:
        self._say("revoke", access_key=access_key)

    def _say(self, what: str, **said: str | float) -> Any:  # noqa: ANN401 JSON
        request = Request(f"{self.url}{CONTROL}{what}", json.dumps(said).encode())  # noqa: S310 it is ours
        with urlopen(request, timeout=10) as answer:  # noqa: S310
            return json.load(answer)

    @property
    def writer(self) -> dict[str, str]:
        """Options of deltalake for an identity that may do anything."""
        return {
            "aws_access_key_id": self._owner["AccessKeyId"],
            "aws_secret_access_key": self._owner["SecretAccessKey"],
            "aws_region": REGION,
            "aws_endpoint_url": self.url,
            "aws_allow_http": "true",
            "aws_conditional_put": "etag",
        }

    def uri(self, path: str) -> str:
        return f"s3://{NAME}/{path}"

    def vend(self, table: Table) -> dict[str, Any]:
        """Return TemporaryCredentials that read the table and nothing else, and are void when they end."""
        sts, role = self._client("sts"), self._role(table)
        made = sts.assume_role(RoleArn=role, RoleSessionName=uuid.uuid4().hex)["Credentials"]
        # A little later than it says: a request that was signed in time is still good when it arrives.
        timer = threading.Timer(self.lifetime + _GRACE, self.revoke, [made["AccessKeyId"]])
        timer.daemon = True
        timer.start()
        keys = {
            "access_key_id": made["AccessKeyId"],
            "secret_access_key": made["SecretAccessKey"],
            "session_token": made["SessionToken"],
        }
        return {"aws_temp_credentials": keys, "expiration_time": int((time.time() + self.lifetime) * 1000)}

    def keys_of(self, requests: Iterable[S3Request]) -> list[str]:
        """The keys that signed these requests, in the order in which they were first used."""
        return list(dict.fromkeys(request.access_key for request in requests))

    def _open(self) -> None:
        iam = self._client("iam", "any", "any-secret")
        user = f"owner-{uuid.uuid4().hex}"
        iam.create_user(UserName=user)
        iam.put_user_policy(UserName=user, PolicyName="all", PolicyDocument=_policy(self._allowed))
        self._owner = iam.create_access_key(UserName=user)["AccessKey"]
        place = {"LocationConstraint": REGION}
        s3 = self._client("s3")
        if NAME not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
            s3.create_bucket(Bucket=NAME, CreateBucketConfiguration=place)

    def _role(self, table: Table) -> str:
        assert table.location is not None
        name = f"reads-{table.table_id}"
        arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
        if name not in self.roles:
            iam, prefix = self._client("iam"), table.location.removeprefix(f"s3://{NAME}/")
            trust = _policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}})
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)
            # moto asks for listing by the bucket alone, whatever the prefix is.
            objects = [f"arn:aws:s3:::{NAME}", f"arn:aws:s3:::{NAME}/{prefix}", f"arn:aws:s3:::{NAME}/{prefix}/*"]
            may = {"Effect": "Allow", "Action": list(_READING), "Resource": objects}
            iam.put_role_policy(RoleName=name, PolicyName="reads", PolicyDocument=_policy(may))
            self.roles.add(name)
        return arn

    def _client(self, service: str, key: str | None = None, secret: str | None = None) -> Any:  # noqa: ANN401 boto3 has no types
        return boto3.client(
            service,
            region_name=REGION,
            endpoint_url=self.url,
            aws_access_key_id=key or self._owner["AccessKeyId"],
            aws_secret_access_key=secret or self._owner["SecretAccessKey"],
        )


def _policy(statement: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
