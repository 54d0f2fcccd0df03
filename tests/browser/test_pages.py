"""Every page, wide and narrow, light and dark: a quiet console, nothing too wide, nothing that axe finds serious."""

import pytest

from tests.browser.scenery import PATHS, furnished
from tests.browser.world import World


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_every_page_can_be_used_by_everybody(at: World, *, phone: bool) -> None:
    """Labels, contrast, structure and width of each page, in both themes."""
    ada = await at.town.first()
    things = await furnished(at, ada)
    nobody = await at.window(phone=phone)
    await nobody.go("/sign-in")
    await nobody.accessible()
    await nobody.fits()
    for theme in ("light", "dark"):
        window = await at.window(ada, phone=phone, color_scheme=theme)
        for path in PATHS:
            await window.go(path.format(**things))
            await window.page.wait_for_load_state("load")
            # Only colours differ in the dark.
            await window.accessible(*(["color-contrast"] if theme == "dark" else []))
            await window.fits()
