"""A token that was refused has the next step for the authority's code."""

from __future__ import annotations

import pytest

from mirror_assets.lakes.errors import TOKEN_REFUSED, token_refused


@pytest.mark.parametrize(
    ("code", "step"),
    [
        ("AADSTS7000222", "the client secret has expired: create a new one"),
        ("AADSTS7000215", "set AZURE_CLIENT_SECRET to the value of the client secret, not to its id"),
        ("AADSTS700016", "check AZURE_CLIENT_ID"),
        ("AADSTS90002", "set AZURE_TENANT_ID"),
    ],
)
def test_a_code_of_entra_has_its_own_next_step(code: str, step: str) -> None:
    error = token_refused("https://zone", f"Authentication failed: {code}: The provided keys are wrong.\nTrace")
    assert error.row is TOKEN_REFUSED
    assert f"{code}: The provided" in error.what
    assert error.next_step.startswith(step)


@pytest.mark.parametrize("why", ["AADSTS50034: no such user", "AADSTS70002154: another", "401"])
def test_an_unknown_code_has_the_general_one(why: str) -> None:
    assert token_refused("https://zone", why).next_step == TOKEN_REFUSED.next_step
