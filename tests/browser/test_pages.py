"""Every page, wide and narrow, light and dark: a quiet console, nothing too wide, nothing that axe finds serious.

axe looks once at each page in each theme: at the light one on a wide screen, at the dark one on a phone, so that what
is only on one of them is seen as well.
"""

import pytest

from tests.browser.scenery import PATHS, furnished
from tests.browser.world import World


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_every_page_can_be_used_by_everybody(at: World, *, phone: bool) -> None:
    """Labels, contrast, structure and width of each page."""
    ada = await at.town.first()
    things = await furnished(at, ada)
    nobody = await at.window(phone=phone)
    await nobody.go("/sign-in")
    await nobody.accessible()
    await nobody.fits()
    window = await at.window(ada, phone=phone, color_scheme="dark" if phone else "light")
    for path in PATHS:
        await window.go(path.format(**things))
        await window.page.wait_for_load_state("load")
        await window.accessible()
        await window.fits()
