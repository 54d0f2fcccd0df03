"""An address: the socket the HTTP server answers on, opened by whoever starts it."""

import socket
from contextlib import ExitStack

from imprint.problem import Unavailable


def listen(host: str, port: int) -> socket.socket:
    """Open the address, or say in one sentence why it cannot be had."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with ExitStack() as stack:
            # TCP is named: else asyncio does not turn Nagle off.
            opened = stack.enter_context(socket.socket(family, proto=socket.IPPROTO_TCP))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind((host, port))
            opened.listen()
            stack.pop_all()
            return opened
    except (OSError, UnicodeError) as error:
        raise Unavailable(
            "address.taken",
            f"Imprint cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}; "
            "set IMPRINT_HOST to an address of this machine and IMPRINT_PORT to a free port, or to 0 for any.",
        ) from error


def address(opened: socket.socket) -> str:
    """Give the URL at which a socket is reached."""
    host, port = opened.getsockname()[:2]
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - only to show an address one can click
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
