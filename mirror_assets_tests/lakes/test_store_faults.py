"""An error of a store or of deltalake names the cause, the store and the next step, whichever call meets it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mirror_assets.errors import ErrorCode, MirrorError, SettingError
from mirror_assets.lakes.access import PlainAccess
from mirror_assets.lakes.errors import SOURCE_UNAVAILABLE, SOURCE_UNREADABLE, SourceUnreadable
from mirror_assets.lakes.store_faults import FAULTS
from mirror_assets.source.log import DeltaLog
from mirror_assets_tests.errors import raises
from mirror_assets_tests.pages import DOCS, codes, table
from mirror_assets_tests.source.refusing_store import S3_ERRORS, S3Error, closed_port, refusing, silent
from mirror_assets_tests.worlds.onelake.certificates import Authority

_URI = "s3://acme-lake/sales/orders"
_KEYS = {"aws_access_key_id": "a-key", "aws_secret_access_key": "a-secret", "aws_region": "us-east-1"}
_QUICK = {"max_retries": "1", "retry_timeout": "5s", "aws_allow_http": "true"}
# The cause in the message, a part of the next step, and whether it may pass without a change.
_CAUSES = {
    "SignatureDoesNotMatch": ("does not accept the keys", "AWS_SECRET_ACCESS_KEY", False),
    "InvalidAccessKeyId": ("does not accept the keys", "`credential` and `env_prefix`", False),
    "InvalidToken": ("does not accept the keys", "AWS_SESSION_TOKEN", False),
    "ExpiredToken": ("refuses keys whose time is over", "AWS_SESSION_TOKEN", True),
    "RequestTimeTooSkewed": ("refuses the time of this machine", "clock", False),
    "AccessDenied": ("denies access", "s3:GetObject", False),
    "PermanentRedirect": ("in another region", "`region` of the store in `stores`", False),
    "AuthorizationHeaderMalformed": (
        "in another region than the one that was asked, eu-central-1",
        "AWS_REGION",
        False,
    ),
    "NoSuchBucket": ("does not exist", "`root` of the store in `stores`", False),
    "SlowDown": ("takes no more requests for now", "run again", True),
    "TooManyRequests": ("takes no more requests for now", "run again", True),
    "InternalError": ("failed (", "run again", True),
}
_READS: dict[str, Callable[[str, PlainAccess], object]] = {
    "state": lambda uri, access: DeltaLog(uri, access).state(),
    "listing": lambda uri, access: DeltaLog(uri, access).newest(),
    "commit": lambda uri, access: DeltaLog(uri, access).has_commit(3),
}


def _error(endpoint: str, read: str = "state", **options: str) -> MirrorError:
    access = PlainAccess(_URI, {**_KEYS, **_QUICK, "aws_endpoint_url": endpoint, **options})
    with pytest.raises(MirrorError) as caught:
        _READS[read](_URI, access)
    error = caught.value
    assert error.what.startswith(f"{_URI} can't be read")
    assert "the store s3://acme-lake " in error.what
    assert not re.search(r"a-key|a-secret|Kernel error|\x1b|↳", str(error))
    return error


@pytest.mark.parametrize("read", _READS)
@pytest.mark.parametrize("code", _CAUSES)
def test_an_error_of_the_store_is_reported_by_its_cause(code: str, read: str) -> None:
    cause, named, passes = _CAUSES[code]
    with refusing(S3_ERRORS[code]) as endpoint:
        error = _error(endpoint, read)
    assert cause in error.what
    assert named in error.next_step
    assert error.row is (SOURCE_UNAVAILABLE if passes else SOURCE_UNREADABLE)


@pytest.mark.parametrize(
    ("status", "cause", "passes"),
    [
        (401, "does not accept the keys (401)", False),
        (403, "denies access (403", False),
        (404, "can't be read: ", False),
        (429, "takes no more requests for now (", True),
        (500, "failed (500)", True),
        (503, "takes no more requests for now (503)", True),
    ],
)
def test_an_answer_without_a_code_is_known_by_its_status(status: int, cause: str, passes: bool) -> None:
    access = PlainAccess(_URI, {**_KEYS, **_QUICK, "max_retries": "0"})
    with refusing(S3Error(status, "")) as endpoint, pytest.raises(MirrorError) as caught:
        DeltaLog(_URI, replace(access, options={**access.options, "aws_endpoint_url": endpoint})).state()
    assert cause in caught.value.what
    assert caught.value.row is (SOURCE_UNAVAILABLE if passes else SOURCE_UNREADABLE)


def test_what_is_denied_is_named() -> None:
    denied = S3_ERRORS["AccessDenied"]
    with refusing(denied) as endpoint:
        assert "(AccessDenied: sales/orders/_delta_log/)" in _error(endpoint, "listing").what
    with refusing(replace(denied, on="03.json")) as endpoint:
        what = _error(endpoint, "commit").what
    assert "denies access (AccessDenied: sales/orders/_delta_log/00000000000000000003.json)" in what


@pytest.mark.parametrize("read", _READS)
def test_a_closed_port(read: str) -> None:
    error = _error(closed_port(), read)
    assert "gives no answer (Connection refused)" in error.what
    assert "`endpoint` of the store in `stores`" in error.next_step
    assert error.row is SOURCE_UNAVAILABLE


def test_a_server_that_never_answers() -> None:
    with silent() as endpoint:
        error = _error(endpoint, timeout="1s", max_retries="0")
    assert "gives no answer (operation timed out)" in error.what


def test_a_host_without_an_address() -> None:
    error = _error("http://nohost.invalid:9000")
    assert "has a host whose name is not found" in error.what
    assert error.row is SOURCE_UNAVAILABLE


@pytest.mark.parametrize("read", _READS)
def test_a_certificate_of_an_unknown_authority_is_refused_until_the_authority_is_trusted(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    with refusing(S3_ERRORS["AccessDenied"], authority.server_pem()) as endpoint:
        error = _error(endpoint, read)
        assert "shows a certificate that no known authority has signed" in error.what
        assert "SSL_CERT_FILE" in error.next_step
        assert isinstance(error, SourceUnreadable)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
        assert "denies access" in _error(endpoint, read).what


def test_the_page_has_every_cause_with_its_family_and_next_step() -> None:
    told = [(says, codes(family)) for says, _, family, _ in table(DOCS / "doctor.md", "When a source can't be read")]
    assert told == [(fault.says.format(region=""), ["retry" if fault.passes else "setting"]) for fault in FAULTS]


def test_no_credentials() -> None:
    options = {"aws_region": "x", "max_retries": "0", "aws_ec2_metadata_disabled": "true", "retry_timeout": "2s"}
    with pytest.raises(SourceUnreadable, match=r"no credentials were found for it.*Next: check `credential`"):
        DeltaLog(_URI, PlainAccess(_URI, options)).state()


def test_an_invalid_option() -> None:
    with pytest.raises(SourceUnreadable, match="bogus"):
        DeltaLog(_URI, PlainAccess(_URI, {**_KEYS, "timeout": "bogus"})).state()


@pytest.mark.parametrize("uri", ["dbfs:/mnt/lake/orders", "dbfs:///mnt/lake/orders", "DBFS:/user/hive/warehouse/t"])
@pytest.mark.parametrize("read", [DeltaLog.state, DeltaLog.snapshot])
def test_an_address_that_only_databricks_can_open(uri: str, read: Callable[[DeltaLog], object]) -> None:
    with raises(SettingError, ErrorCode.SOURCE_UNREADABLE, match=f"^{uri} is an address that only") as caught:
        read(DeltaLog(uri))
    assert "dbutils.fs.mounts()" in str(caught.value)
