"""DeviantArt's answers as they were really recorded, read by the same code as all others."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from imprint.platforms.contract import Receipt
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.deviantart_sign_in import DeviantArtLogin
from imprint.platforms.failure import Failure, NoAnswer, RateLimited, Refused, SignInAgain
from imprint.platforms.work import RemoteFile, Work
from tests.platforms.recorded import Recorded, answer, observed, recording
from tests.platforms.works import work

DA = DeviantArt()
LOGIN = DeviantArtLogin(client_id="1", client_secret=SecretStr("s"), access_token=SecretStr("t"), app_name="Imprint")


def ready() -> Work:
    """Make a work whose file is uploaded already."""
    made = work()
    return made.with_upload(RemoteFile("9007199254740993", made.files[0].sha256))


async def test_recorded_gallery_and_metadata() -> None:
    """A real page of a gallery, with numbers for times, and real metadata are read."""
    page = recording("deviantart/aycabta__gallery_all.json")
    real = recording("deviantart/aycabta__deviation_metadata_multi.json")
    known = next(each for each in json.loads(page)["results"] if each["title"] == "Sin")
    begun = datetime.fromtimestamp(known["published_time"], UTC)
    last = answer({"has_more": False, "results": []})
    sought = work(title=" SIN", tags=())
    http_ = Recorded(answer(page), last, answer(real))
    assert await DA.find(http_, LOGIN, sought, begun) == Receipt(known["deviationid"], known["url"])
    http_ = Recorded(answer(page), last, answer(real))
    assert await DA.find(http_, LOGIN, replace(sought, tags=("harbour",)), begun) is None


async def test_recorded_deviation_with_a_text_for_its_time() -> None:
    """Newer recordings have a text where the older ones have a number."""
    known = json.loads(recording("deviantart/dinesh__Deviation.json"))
    assert isinstance(known["published_time"], str)
    page = {"has_more": False, "results": [known]}
    told = {"metadata": [{"deviationid": known["deviationid"], "tags": []}]}
    begun = datetime.fromtimestamp(int(known["published_time"]), UTC)
    http_ = Recorded(answer(page), answer(told))
    assert await DA.find(http_, LOGIN, work(title=known["title"], tags=()), begun)
    http_ = Recorded(answer(page))
    later = begun + timedelta(days=1)
    assert await DA.find(http_, LOGIN, work(title=known["title"], tags=()), later) is None


async def test_recorded_answers_of_the_smaller_calls() -> None:
    """Folders, the token check and the refresh are read as they were recorded."""
    pages = answer(recording("deviantart/aycabta__gallery_folders.json")), answer({"has_more": False, "results": []})
    folders = await DA.galleries(Recorded(*pages), LOGIN)
    assert folders[0].name == "Featured"
    await DA.check(Recorded(answer(recording("deviantart/dinesh__PlaceboResponse.json"))), LOGIN, work())
    login = LOGIN.model_copy(update={"refresh_token": SecretStr("r")})
    fresh = await DA.renew(Recorded(answer(recording("deviantart/aycabta__refresh_authorization_code.json"))), login)
    assert fresh.refresh_token
    assert fresh.refresh_token.get_secret_value() == "aaaa"


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("error_401_invalid_request_with_no_access_token", 401, SignInAgain),
        ("error_401_invalid_token", 401, SignInAgain),
        ("error_404_api_endpoint_not_found", 404, Refused),
        ("error_404_version_error", 404, Refused),
        ("gallery_folders_create-folder_is_required", 400, Refused),
        ("gallery_folders_remove-failed_to_remove_top_folder", 500, NoAnswer),
        ("fave-error", 400, Refused),
    ],
)
async def test_recorded_errors(name: str, status: int, kind: type[Failure]) -> None:
    """Each recorded error is one of the closed set."""
    body = recording(f"deviantart/aycabta__{name}.json")
    with pytest.raises(Failure) as seen:
        await DA.publish(Recorded(answer(body, status)), LOGIN, ready())
    assert type(seen.value) is kind


@pytest.mark.parametrize("row", observed(), ids=lambda row: str(row["src"]).rpartition("/")[2])
async def test_answers_that_people_have_quoted(row: dict[str, Any]) -> None:
    """What was seen in public is classified: limits as limits, expiry as expiry, the rest not as success."""
    status = row["http"] or 500
    body = row.get("body", row.get("raw_body", "").encode() if row["http"] != 200 else b" " * 19)
    headers = {name.lower(): value for name, value in row.get("headers", {}).items()}
    with pytest.raises(Failure) as seen:
        await DA.publish(Recorded(answer(body, status, **headers)), LOGIN, ready())
    kinds = {429: RateLimited, 401: SignInAgain, 403: RateLimited, 400: Refused, 404: Refused}
    assert type(seen.value) is kinds.get(status, NoAnswer)
