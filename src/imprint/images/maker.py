"""The maker: makes variants of images in child processes that are limited in all they can do.

A child is warm and works on one image at a time. It is handed open files, never paths; what it says and writes is
checked here, because after a hostile file it may no longer be itself. One that fails is replaced.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from imprint.images.bounds import Bounds
from imprint.images.facts import Facts
from imprint.images.fit import VERSION, Limits
from imprint.images.made import Made, Outputs
from imprint.images.process import ChildProcess, Gone
from imprint.images.recipes import Recipe
from imprint.images.refusal import BEFORE_DECODING, problem

Understood = TypeVar("Understood")
Answer = dict[str, Any]


@dataclass
class Maker:
    """A pool of children; `open_maker` makes one."""

    bounds: Bounds
    children: int
    # The most memory a child ever had.
    peak_bytes: int = 0
    # How many children were ended over an image.
    failures: int = 0
    _closed: bool = False
    _idle: list[ChildProcess] = field(default_factory=list)
    _room: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        """Make room for the children."""
        self._room = asyncio.Semaphore(self.children)

    async def look(self, source: Path) -> Facts:
        """Tell what a file is from its header, without decoding it; raise BadImage or MakerFailed."""

        async def understand(answer: Answer) -> Facts:
            return Facts.heard(answer["facts"])

        return await self._ask({"do": "look"}, source, (), understand)

    async def make(self, source: Path, recipes: Sequence[Recipe], folder: Path) -> list[Made]:
        """Make variants, one file each in a folder, all from one decoding; raise BadImage or MakerFailed."""
        with Outputs(folder, len(recipes)) as outputs:

            async def understand(answer: Answer) -> list[Made]:
                facts = [Facts.heard(said) for said in answer["made"]]
                named = [(recipe.variant, recipe.version) for recipe in recipes]
                return await asyncio.to_thread(outputs.keep, list(zip(named, facts, strict=True)))

            asked = {"do": "make", "recipes": [asdict(recipe) for recipe in recipes]}
            return await self._ask(asked, source, outputs.descriptors, understand)

    async def fit(self, source: Path, limits: Limits, folder: Path) -> Made | None:
        """Make the largest rendition within limits; None when the original is; raise BadImage or MakerFailed."""
        with Outputs(folder, 1) as outputs:

            async def understand(answer: Answer) -> Made | None:
                if answer["made"] is None:
                    return None
                facts = Facts.heard(answer["made"])
                return (await asyncio.to_thread(outputs.keep, [((limits.variant, VERSION), facts)]))[0]

            asked = {"do": "fit", "limits": {**asdict(limits), "types": sorted(limits.types)}}
            return await self._ask(asked, source, outputs.descriptors, understand)

    async def close(self) -> None:
        """End the children that have nothing to do; whoever still asks ends its own."""
        self._closed = True
        while self._idle:
            await self._idle.pop().end()

    async def _ask(
        self,
        asked: Answer,
        source: Path,
        outputs: Sequence[int],
        understand: Callable[[Answer], Awaitable[Understood]],
    ) -> Understood:
        file = await asyncio.to_thread(os.open, source, os.O_RDONLY | os.O_CLOEXEC)
        try:
            async with self._room:
                return await self._answered(asked, [file, *outputs], understand)
        finally:
            os.close(file)

    async def _answered(
        self, asked: Answer, files: Sequence[int], understand: Callable[[Answer], Awaitable[Understood]]
    ) -> Understood:
        """Ask a child; one that is not well afterwards never sees another image."""
        child = await self._child()
        well = False
        try:
            answer = await child.ask(asked, files)
            self.peak_bytes = max(self.peak_bytes, int(answer["peak_bytes"]))
            code = answer.get("refused")
            if code is not None:
                well = code in BEFORE_DECODING
                raise problem(str(code))
            understood = await understand(answer)
            well = True
        except Gone as gone:
            raise problem(gone.code) from gone
        except (ValueError, LookupError, TypeError) as error:  # it talks nonsense, or wrote some
            raise problem("image.crashed") from error
        else:
            return understood
        finally:
            if well and not self._closed and child.asked < self.bounds.images_per_child:
                self._idle.append(child)
            else:
                self.failures += not well
                await child.end()

    async def _child(self) -> ChildProcess:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
            await child.end()
        return await ChildProcess.start(self.bounds)


@asynccontextmanager
async def open_maker(bounds: Bounds, children: int) -> AsyncIterator[Maker]:
    """Open a maker with room for some children; they start when they are first needed."""
    maker = Maker(bounds, children)
    try:
        yield maker
    finally:
        await maker.close()
