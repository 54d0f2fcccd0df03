"""Webhooks: signed as the standard says, one id for every attempt, and each status with one meaning."""

import json
from datetime import timedelta

import pytest
from pydantic import SecretStr

from imprint.engine.wire import Wire
from imprint.platforms.failure import Failure, NoAnswer, NotYet, RateLimited, Refused, SignInAgain
from imprint.platforms.webhook import Webhook, WebhookLogin, message, sign
from imprint.sandbox.faults import Fault
from imprint.sandbox.server import sandbox
from tests.platforms.recorded import Recorded, answer, recording
from tests.platforms.works import work

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 - the standard's own example
LOGIN = WebhookLogin(url=SecretStr("https://hook.example/x"), secret=SecretStr(SECRET))


def test_the_standards_own_vector() -> None:
    """The signature of the published example comes out the same."""
    vector = json.loads(recording("webhooks/standard_webhooks_vector.json"))
    made = sign(
        SecretStr(vector["secret"]),
        vector["webhook-id"],
        str(vector["webhook-timestamp"]),
        vector["body"].encode(),
    )
    assert made == vector["webhook-signature"]


async def test_every_attempt_has_the_same_id_and_body() -> None:
    """What is sent again differs in time and signature only."""
    made = work()
    http = Recorded(answer(b"", 500), answer(b"", 204))
    with pytest.raises(NoAnswer):
        await Webhook().publish(http, LOGIN, made)
    assert (await Webhook().publish(http, LOGIN, made)).remote_id == made.key
    first, second = (dict(asked.sent_headers()) for asked in http.asked)
    assert first["webhook-id"] == second["webhook-id"] == made.key
    assert await http.asked[0].digest() == await http.asked[1].digest()
    for sent in (first, second):
        assert sent["webhook-signature"] == sign(LOGIN.secret, made.key, sent["webhook-timestamp"], message(made))


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (301, Refused, "webhook.redirect"),
        (302, Refused, "webhook.redirect"),
        (308, Refused, "webhook.redirect"),
        (400, Refused, "webhook.refused_400"),
        (401, SignInAgain, "webhook.secret"),
        (403, SignInAgain, "webhook.secret"),
        (404, Refused, "webhook.refused_404"),
        (408, NotYet, "webhook.not_yet"),
        (410, Refused, "webhook.gone"),
        (413, Refused, "webhook.refused_413"),
        (425, NotYet, "webhook.not_yet"),
        (429, RateLimited, "webhook.rate_limited"),
        (500, NoAnswer, "webhook.no_answer"),
        (502, NoAnswer, "webhook.no_answer"),
        (503, NoAnswer, "webhook.no_answer"),
        (504, NoAnswer, "webhook.no_answer"),
        (999, NoAnswer, "webhook.no_answer"),
        (199, NoAnswer, "webhook.no_answer"),
    ],
)
async def test_each_status_has_one_meaning(status: int, kind: type[Failure], code: str) -> None:
    """Redirects are failures, gone is for ever, and what a broken server has done is unknown."""
    headers = {"retry-after": "11"}
    with pytest.raises(Failure) as seen:
        await Webhook().publish(Recorded(answer(b"", status, **headers)), LOGIN, work())
    assert (type(seen.value), seen.value.code) == (kind, code)
    if isinstance(seen.value, RateLimited | NotYet | NoAnswer):
        assert seen.value.after == timedelta(seconds=11)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_is_a_success(status: int) -> None:
    """The status says that it was taken; the body does not matter."""
    made = work()
    assert (await Webhook().publish(Recorded(answer(b"<html>", status)), LOGIN, made)).remote_id == made.key


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_####", "whsec_QUJD", "password", "whsec_" + "QUJD" * 40])
async def test_a_bad_secret_is_noticed_before_anything_is_sent(secret: str) -> None:
    """Who mistypes the secret hears it when the account is added, and again before a send."""
    http = Recorded()
    with pytest.raises(SignInAgain):
        await Webhook().begin(http, {"url": "https://hook.example/x", "secret": secret}, "")
    with pytest.raises(SignInAgain) as seen:
        await Webhook().publish(http, WebhookLogin(url=LOGIN.url, secret=SecretStr(secret)), work())
    assert seen.value.code == "webhook.bad_secret"
    assert http.asked == []


async def test_an_account_needs_an_address() -> None:
    """Only http and https with a host are addresses."""
    login = await Webhook().begin(Recorded(), {"url": " https://hook.example/x ", "secret": SECRET}, "")
    assert isinstance(login, WebhookLogin)
    assert login.name == "hook.example"
    for url in ("", "hook.example", "ftp://x/y", "https://", "javascript:alert(1)"):
        with pytest.raises(Refused):
            await Webhook().begin(Recorded(), {"url": url, "secret": SECRET}, "")


async def test_a_receiver_that_does_not_keep_to_the_standard_acts_twice() -> None:
    """The sandbox's log shows a duplicate when there is one: the oracle is not blind."""
    async with sandbox() as running:
        login = WebhookLogin.model_validate_json(running.login("webhook", "artist"))
        running.sites["webhook"].switch("deduplicates", on=False)
        running.faults.next(Fault.RESET_AFTER)
        made = work()
        with pytest.raises(NoAnswer):
            await Webhook().publish(Wire().within(5), login, made)
        await Webhook().publish(Wire().within(5), login, made)
        assert [each.data["key"] for each in running.log.effects()] == [made.key, made.key]


async def test_a_wrong_secret_is_turned_away() -> None:
    """The receiver checks the signature, and says so."""
    async with sandbox() as running:
        login = WebhookLogin.model_validate_json(running.login("webhook", "artist"))
        wrong = login.model_copy(update={"secret": SecretStr(SECRET)})
        with pytest.raises(SignInAgain) as seen:
            await Webhook().publish(Wire().within(5), wrong, work())
        assert not seen.value.renewable
        assert running.log.effects() == []
