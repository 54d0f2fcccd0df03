"""Control of a running sandbox over HTTP, for other processes: faults, switches, accounts, the log; and its page."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from imprint.sandbox.exchange import Call, Reply, html_reply, json_reply
from imprint.sandbox.faults import Faults, Rule
from imprint.sandbox.log import Log
from imprint.sandbox.page import gallery
from imprint.sandbox.site import Site


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
                return html_reply(gallery(self._log))
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
