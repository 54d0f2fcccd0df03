"""A connection to the sandbox that can really be cut: a TCP reset, as from a machine that lost its power."""

import asyncio
import socket
import struct
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_LINGER_NOT_AT_ALL = struct.pack("ii", 1, 0)


class Connection(H11Protocol):
    """The server's own HTTP protocol, with its transport handed to the application."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as in the class itself
        """Let the application see the transport of each request."""
        self.app_state = {**self.app_state, "transport": transport}
        super().connection_made(transport)


def cut(scope: Any) -> None:
    """Reset the connection of a request; whatever was not sent yet is lost."""
    transport: asyncio.Transport = scope["state"]["transport"]
    opened = transport.get_extra_info("socket")
    if opened is not None and not transport.is_closing():
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT_AT_ALL)
    transport.abort()
