"""An answer: what came back from a server, whole and bounded, or one of the five failures."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from imprint.sources.contract import Gone, NotYet, RateLimited, Refused, Unreadable, Wish
from imprint.sources.moment import from_epoch, moment

LONGEST_WISH = timedelta(days=365)  # the caller clamps; this keeps hostile numbers inside what time can hold
_MAX_AGE = re.compile(r"(?:^|[\s,])(?:s-maxage|max-age)\s*=\s*\"?(\d{1,12})", re.IGNORECASE)
_PASSING = {408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}


@dataclass(frozen=True)
class Answer:
    """A server's answer, its body read to the end."""

    status: int
    headers: httpx2.Headers
    body: bytes
    url: str  # where it came from in the end
    moved_to: str | None

    def wish(self) -> Wish:
        """Say when the server would like to be asked again."""
        control = _MAX_AGE.search(self.headers.get("cache-control", ""))
        age = self.headers.get("age", "0")
        fresh = _seconds(int(control[1]) - (int(age) if re.fullmatch(r"\d{1,9}", age) else 0)) if control else None
        wishes = [wish for wish in (fresh, self.retry_after()) if wish]
        return Wish(max(wishes, default=None))

    def retry_after(self) -> timedelta | None:
        """Say how long the server asked us to wait; dates count from its own clock where it tells it."""
        text = self.headers.get("retry-after", "").strip()
        if re.fullmatch(r"\d{1,12}", text):
            return _seconds(int(text))
        until = moment(text) or from_epoch(self.headers.get("x-ratelimit-retry-after"))
        if until is None:
            return None
        now = moment(self.headers.get("date")) or datetime.now(UTC)
        return max(timedelta(0), min(until - now, LONGEST_WISH))

    def json(self) -> Any:
        """Read the body as JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise Unreadable("source.not_json", f"The answer is not JSON: {str(error)[:100]}.") from error

    def settle(self) -> None:
        """Raise the failure that the status is, if it is one."""
        if self.status in {200, 304}:
            return
        if self.status == httpx2.codes.TOO_MANY_REQUESTS:
            raise RateLimited("source.rate_limited", "The server wants to be asked less often.", self.retry_after())
        if self.status == httpx2.codes.GONE:
            raise Gone("source.gone", "The server says that this is gone for good.")
        if self.status in _PASSING:
            raise NotYet("source.server_error", f"The server answered {self.status}.", self.retry_after())
        if self.status in {301, 302, 303, 307, 308}:
            raise Refused("source.redirect", "The server sends us elsewhere, where we will not go.")
        raise Refused(f"source.http_{self.status}", f"The server answered {self.status}.")


async def ask(http: httpx2.AsyncClient, request: httpx2.Request, most: int) -> Answer:
    """Send a request once and read the answer, up to so many bytes."""
    try:
        response = await http.send(request, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > most:
                    raise Unreadable("source.too_large", f"The answer is larger than {most:,} bytes.")
        finally:
            await response.aclose()
    except httpx2.DecodingError as error:
        raise Unreadable("source.undecodable", _because("The answer could not be unpacked", error)) from error
    except httpx2.TimeoutException as error:
        raise NotYet("source.timeout", _because("The server took too long", error)) from error
    except (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.ProxyError) as error:
        raise NotYet("source.unreachable", _because("The server could not be reached", error)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Refused("source.refused", _because("This was not asked for", error)) from error
    url = str(response.extensions.get("url", response.url))
    moved_to = response.extensions.get("moved_to")
    return Answer(response.status_code, response.headers, bytes(body), url, str(moved_to) if moved_to else None)


def get(
    http: httpx2.AsyncClient, url: str, *, params: Any = None, headers: dict[str, str] | None = None
) -> httpx2.Request:
    """Write a GET request; refuse a URL that is none."""
    try:
        return http.build_request("GET", url, params=params, headers=headers)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise Refused("source.bad_url", f"This is not a URL that can be asked: {str(error)[:200]}.") from error


def _seconds(number: int) -> timedelta | None:
    return timedelta(seconds=min(number, int(LONGEST_WISH.total_seconds()))) if number > 0 else None


def _because(what: str, error: Exception) -> str:
    why = str(error)[:300].rstrip(".") or type(error).__name__
    return f"{what}: {why}."
