"""Control of a running sandbox over HTTP, for other processes: faults, switches, accounts, the log; and its page."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from time import gmtime, strftime

from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.faults import Faults, Rule
from imprint.sandbox.log import Entry, Log
from imprint.sandbox.site import Site

NEWEST = 200


class Control:
    """The part of the sandbox that is no platform."""

    def __init__(self, log: Log, faults: Faults, sites: Mapping[str, Site]) -> None:
        self._log = log
        self._faults = faults
        self._sites = sites

    async def handle(self, call: Call) -> Reply:
        """Answer whoever runs the sandbox."""
        try:
            return self._handle(call)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            return json_reply({"error": f"{type(error).__name__}: {error}"}, 400)

    def _handle(self, call: Call) -> Reply:  # noqa: PLR0911 - one return for each path
        match call.method, call.path:
            case "GET", "/":
                return html_reply(page(self._log))
            case "GET", "/_sandbox/log":
                kind, site = call.query.get("what"), call.query.get("site")
                entries = self._log.entries(kind, site, int(call.query.get("after", "0")))
                return json_reply([asdict(entry) for entry in entries])
            case "POST", "/_sandbox/faults":
                told = json.loads(call.body)
                for each in told if isinstance(told, list) else [told]:
                    self._faults.add(Rule.heard(each))
                return json_reply({"status": "success"})
            case "DELETE", "/_sandbox/faults":
                self._faults.clear()
                return json_reply({"status": "success"})
            case "POST", "/_sandbox/switches":
                told = json.loads(call.body)
                self._sites[told["site"]].switch(told["name"], on=bool(told["on"]))
                return json_reply({"status": "success"})
            case "POST", "/_sandbox/tokens":
                told = json.loads(call.body)
                self._sites[told["site"]].spoil(str(told["account"]), str(told["token"]))
                return json_reply({"status": "success"})
            case "POST", "/_sandbox/accounts":
                told = json.loads(call.body)
                login = self._sites[told["site"]].login(f"{call.base_url}/{told['site']}", str(told["name"]))
                return json_reply({"site": told["site"], "login": json.loads(login)})
            case _:
                return json_reply({"error": "there is nothing here"}, 404)


def page(log: Log) -> str:
    """Draw what has arrived, the newest first."""
    effects = log.effects()
    keys = [(entry.site, entry.data["key"]) for entry in effects]
    twice = len(keys) - len(set(keys))
    rows = "".join(map(_row, reversed(effects[-NEWEST:])))
    return _PAGE.format(count=len(effects), twice=twice, rows=rows or "<li>Nothing yet.</li>")


def _row(entry: Entry) -> str:
    title, account = escape(str(entry.data["title"])), escape(str(entry.data["account"]))
    at = strftime("%H:%M:%S", gmtime(entry.at))
    picture = entry.data.get("picture")
    image = f'<img src="{escape(str(picture))}" alt="">' if picture else '<span class="none"></span>'
    return (
        f"<li>{image}<div><strong>{title}</strong><small>{escape(entry.site)} · {account} · {at} UTC</small></div></li>"
    )


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="refresh" content="3">
<title>Imprint's sandbox</title>
<style>
  :root {{ color-scheme: light dark; font: 16px/1.4 system-ui, sans-serif; }}
  body {{ max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
  ul {{ list-style: none; padding: 0; display: grid; gap: 1rem;
       grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); }}
  li {{ border: 1px solid #8884; border-radius: .5rem; overflow: hidden; }}
  img, .none {{ display: block; width: 100%; height: 9rem; object-fit: cover; background: #8882; }}
  div {{ padding: .6rem .8rem; overflow-wrap: anywhere; }}
  small {{ display: block; opacity: .7; }}
</style>
<h1>What has arrived</h1>
<p>{count} published here, {twice} of them more than once. Nothing of this has left your machine.</p>
<ul>{rows}</ul>
"""
