"""A real S3 server for the tests: `rclone serve s3`, on loopback, over a folder."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from imprint.blobs.s3 import S3Place

BUCKET = "imprint"
KEY, SECRET = "AKIAIMPRINTTESTS0000", "imprint-tests-secret-not-secret-at-all"


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    folder: Path

    def place(self, prefix: str = "") -> S3Place:
        """Name a part of the one bucket there is: rclone does not see a bucket that is made behind its back."""
        return S3Place(
            BUCKET,
            prefix=prefix,
            endpoint=f"http://127.0.0.1:{self.port}",
            access_key_id=KEY,
            secret_access_key=SecretStr(SECRET),
            allow_http=True,
            retries=1,
        )


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server, wait until it answers, and end that very process."""
    folder = Path(tempfile.mkdtemp(prefix="imprint-s3-"))
    (folder / BUCKET).mkdir()
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [
            str(Path(sys.executable).parent / "rclone"),
            *("serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"),
            *("--config", os.devnull, str(folder)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(folder)},
    )
    try:
        _wait(process, port)
        yield Server(port, folder)
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("rclone did not begin to serve S3")
