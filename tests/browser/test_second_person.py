"""A second person sees nothing of the first: on no page and in no part of one, as the router lists them."""

import re

from fastapi.routing import APIRoute

from imprint.web.house import PAGES
from tests.api.estate import WORD, settle
from tests.browser.world import World

# What the names in paths stand for, where an estate calls it otherwise.
OTHERWISE = {"platform": "deviantart"}
BROWSER = {"Accept": "text/html"}


async def test_a_second_person_sees_nothing_of_the_first(at: World) -> None:
    """Every address that there is, with ids of the first person's things wherever it takes one."""
    ada = await at.town.first()
    bob = await at.town.invited(ada, "bob")
    estate = await settle(at.town, ada)
    things = {**estate.things, **OTHERWISE}
    routes = [route for page in PAGES for route in page.routes.routes if isinstance(route, APIRoute)]
    paths = {re.sub(r"{(\w+)}", lambda found: str(things[found[1]]), route.path): route.path for route in routes}
    window = await at.window(bob)
    # To come back from where one never went is a mistake.
    window.expect("403", "404", "/accounts/return")
    seen = looked = 0
    for path, route in paths.items():
        answer = await bob.http.get(path, headers=BROWSER)
        assert WORD not in answer.text, path
        if "</html>" in answer.text:
            # Scripts ask for more than the page brings.
            await window.go(path)
            await window.page.wait_for_load_state("load")
            assert WORD not in await window.page.content(), path
            looked += 1
        if "{" in route:
            # Whose it is sees it: what the other one does not see is not only an address that is wrong.
            own = await ada.http.get(path, headers=BROWSER)
            assert own.status_code < 400, (path, own.status_code)
            seen += WORD in own.text
    assert (seen > 5, looked > 15) == (True, True)
