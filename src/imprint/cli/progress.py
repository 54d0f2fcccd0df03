"""Progress: a bar on a terminal, and nothing anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import DownloadColumn as BytesColumn


@contextmanager
def progress(*, in_bytes: bool, quiet: bool) -> Iterator[Progress]:
    """Show a bar on standard error, where it is not in the way of what programs read."""
    console = Console(stderr=True)
    columns = (BytesColumn(), TransferSpeedColumn()) if in_bytes else (MofNCompleteColumn(), TimeRemainingColumn())
    shown = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *columns,
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )
    with shown:
        yield shown
