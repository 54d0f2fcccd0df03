"""PKCE: the proof that whoever brings an OAuth code back is the one who set out for it."""

import hmac
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qs, urlencode, urlsplit

from pydantic import SecretStr

from imprint.platforms.failure import Refused

_BYTES = 48


def new_secret() -> SecretStr:
    """Make a verifier, or a state: 64 characters that nobody can guess."""
    return SecretStr(secrets.token_urlsafe(_BYTES))


def challenge(verifier: SecretStr) -> str:
    """Give the S256 challenge of a verifier."""
    digest = sha256(verifier.get_secret_value().encode("ascii")).digest()
    return urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def authorize_url(endpoint: str, verifier: SecretStr, state: SecretStr, fields: Mapping[str, str]) -> str:
    """Give the URL to which a person is sent."""
    query = {
        "response_type": "code",
        **fields,
        "state": state.get_secret_value(),
        "code_challenge": challenge(verifier),
        "code_challenge_method": "S256",
    }
    return f"{endpoint}?{urlencode(query)}"


def returned_code(returned_to: str, state: SecretStr) -> SecretStr:
    """Take the code from the URL a person came back to; refuse one that belongs to somebody else's errand."""
    query = parse_qs(urlsplit(returned_to).query)
    came, code = query.get("state", [""])[0], query.get("code", [""])[0]
    if not hmac.compare_digest(came.encode(), state.get_secret_value().encode()):
        raise Refused("sign_in.wrong_state", "This address does not belong to the sign-in that was begun; begin again.")
    if query.get("error"):
        raise Refused("sign_in.denied", "The platform says that access was not granted.")
    if not code:
        raise Refused("sign_in.no_code", "There is no code in this address; copy all of it and try again.")
    return SecretStr(code)
