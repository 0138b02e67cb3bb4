"""Who gets a token, and what a token is good for."""

from __future__ import annotations

import pytest
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientSecretCredential, EnvironmentCredential

from mirror_assets_tests.worlds.onelake import Fault, LoopbackItem, LoopbackOneLake, Operation, Reply
from mirror_assets_tests.worlds.onelake.entra import STORAGE
from mirror_assets_tests.worlds.onelake.raw import ask

SCOPE = f"{STORAGE}/.default"


def test_the_real_credential_gets_a_token(onelake: LoopbackOneLake) -> None:
    token = onelake.credential().get_token(SCOPE).token
    assert onelake.entra.accepts(token, STORAGE)
    assert [record.operation for record in onelake.log.records] == [Operation.DISCOVERY, Operation.TOKEN]


def test_the_credential_is_found_in_the_environment(onelake: LoopbackOneLake, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in onelake.environment().items():
        monkeypatch.setenv(name, value)
    credential = EnvironmentCredential(disable_instance_discovery=True, connection_verify=str(onelake.ca))
    assert onelake.entra.accepts(credential.get_token(SCOPE).token, STORAGE)


def test_a_wrong_secret_gets_none(onelake: LoopbackOneLake) -> None:
    with pytest.raises(ClientAuthenticationError, match="AADSTS7000215: Invalid client secret"):
        onelake.credential("wrong").get_token(SCOPE)
    assert onelake.log.records[-1].status == 401


def test_an_unknown_client_gets_none(onelake: LoopbackOneLake) -> None:
    principal, trust = onelake.principal, str(onelake.ca)
    stranger = ClientSecretCredential(
        principal.tenant,
        "00000000-0000-0000-0000-000000000000",
        principal.secret,
        authority=onelake.url,
        disable_instance_discovery=True,
        connection_verify=trust,
    )
    with pytest.raises(ClientAuthenticationError, match="AADSTS700016"):
        stranger.get_token(SCOPE)


def test_an_unknown_tenant_is_refused(onelake: LoopbackOneLake) -> None:
    path = "/00000000-0000-0000-0000-000000000000/v2.0/.well-known/openid-configuration"
    answer = ask(onelake, "GET", path)
    assert (answer.status, answer.json["error"]) == (400, "invalid_tenant")


def test_the_old_endpoint_takes_a_resource(onelake: LoopbackOneLake) -> None:
    """Hadoop's ClientCredsTokenProvider asks it when it is configured with the v1 address."""
    principal = onelake.principal
    form = f"grant_type=client_credentials&client_id={principal.client}&client_secret={principal.secret}"
    answer = ask(onelake, "POST", f"/{principal.tenant}/oauth2/token", body=f"{form}&resource={STORAGE}/".encode())
    assert onelake.entra.accepts(str(answer.json["access_token"]), STORAGE)


def test_a_token_without_a_scope_is_refused(onelake: LoopbackOneLake) -> None:
    principal = onelake.principal
    form = f"grant_type=client_credentials&client_id={principal.client}&client_secret={principal.secret}"
    answer = ask(onelake, "POST", f"/{principal.tenant}/oauth2/v2.0/token", body=form.encode())
    assert (answer.status, answer.json["error"]) == (400, "invalid_scope")


def test_without_a_token_there_is_a_challenge(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    answer = ask(onelake, "HEAD", f"/{item.workspace}/{item.guid}/Files/LandingZone")
    assert (answer.status, answer.headers["x-ms-error-code"]) == (401, "NoAuthenticationInformation")
    assert answer.headers["WWW-Authenticate"] == (
        f"Bearer authorization_uri={onelake.url}/{onelake.principal.tenant}/oauth2/authorize resource_id={STORAGE}"
    )


@pytest.mark.parametrize("audience", [None, "https://api.fabric.microsoft.com"])
def test_tokens_for_others_are_refused(onelake: LoopbackOneLake, item: LoopbackItem, audience: str | None) -> None:
    token = onelake.credential().get_token(f"{audience}/.default").token if audience else "made up"
    answer = ask(onelake, "HEAD", f"/{item.workspace}/{item.guid}/Files", {"Authorization": f"Bearer {token}"})
    assert (answer.status, answer.headers["x-ms-error-code"]) == (401, "InvalidAuthenticationInfo")


def test_a_token_expires(onelake: LoopbackOneLake) -> None:
    onelake.entra.lifetime = 0.0
    assert not onelake.entra.accepts(onelake.credential().get_token(SCOPE).token, STORAGE)


def test_the_sdk_sends_again_what_was_challenged(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    challenge = {"WWW-Authenticate": onelake.entra.challenge(onelake.url)}
    onelake.faults.add(Fault(Reply(401, "InvalidAuthenticationInfo", challenge), on=Operation.APPEND))
    with onelake.service() as service:
        file = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        file.create_file()
        file.append_data(b"data", 0, flush=True)
    assert item.read("file") == b"data"


def test_a_revoked_token_stays_in_azure_identitys_cache(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    """So a challenge alone doesn't help: the credential answers it with the token that was refused."""
    with onelake.service() as service:
        file = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        file.create_file()
        onelake.entra.forget_tokens()
        onelake.log.reset()
        with pytest.raises(ClientAuthenticationError):
            file.append_data(b"data", 0, flush=True)
    assert [(record.operation, record.status) for record in onelake.log.records] == [(Operation.APPEND, 401)] * 2


def test_the_sdk_renews_a_token_before_it_expires(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    onelake.entra.lifetime = 200.0
    with onelake.service() as service:
        file = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        file.create_file()
        file.exists()
    tokens = [record for record in onelake.log.records if record.operation is Operation.TOKEN]
    assert len(tokens) == 2


def test_no_secret_is_shown(onelake: LoopbackOneLake) -> None:
    assert onelake.principal.secret not in repr(onelake.principal)


def test_a_credential_that_fails_reaches_no_storage(onelake: LoopbackOneLake, item: LoopbackItem) -> None:
    with onelake.service(credential=onelake.credential("wrong")) as service:
        file = service.get_file_client(item.workspace, f"{item.guid}/Files/LandingZone/file")
        with pytest.raises(ClientAuthenticationError):
            file.create_file()
    assert onelake.log.storage == ()
