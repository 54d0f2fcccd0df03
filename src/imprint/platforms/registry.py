"""The registry: every platform an account can be on, one line each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from imprint.platforms.bluesky import Bluesky
from imprint.platforms.contract import Platform
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.folder import Folder
from imprint.platforms.mastodon import Mastodon
from imprint.platforms.webhook import Webhook
from imprint.platforms.wordpress import WordPress

_ALL: tuple[Platform[Any], ...] = (
    Bluesky(),
    DeviantArt(),
    Folder(),
    Mastodon(),
    Webhook(),
    WordPress(),
)

PLATFORMS: Mapping[str, Platform[Any]] = MappingProxyType({platform.name: platform for platform in _ALL})
