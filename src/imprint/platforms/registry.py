"""The registry: every platform an account can be on, one line each."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from imprint.platforms.contract import Platform
from imprint.platforms.deviantart import DeviantArt
from imprint.platforms.folder import Folder
from imprint.platforms.webhook import Webhook

_ALL: tuple[Platform[Any], ...] = (
    DeviantArt(),
    Folder(),
    Webhook(),
)

PLATFORMS: Mapping[str, Platform[Any]] = MappingProxyType({platform.name: platform for platform in _ALL})
