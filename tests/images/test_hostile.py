"""Hostile files: each gets its own clear code, and hurts nothing but itself."""

import asyncio
import os
import resource
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from imprint.images.bounds import Bounds
from imprint.images.facts import Facts
from imprint.images.fit import Limits
from imprint.images.made import Outputs
from imprint.images.maker import Maker, open_maker
from imprint.images.process import ChildProcess
from imprint.images.recipes import FULL, PREVIEW, THUMBNAIL
from imprint.images.refusal import BadImage, MakerFailed
from imprint.problem import Unavailable
from tests.images.pictures import (
    animation,
    claiming,
    gif_bomb,
    noise,
    plain,
    png_bomb,
    png_claiming,
    saved,
    turned,
    written,
)
from tests.waiting import until

ALL = (THUMBNAIL, PREVIEW, FULL)
WHOLE_JPEG = noise(400, 300).jpegsave_buffer()
WHOLE_PNG = noise(400, 300).pngsave_buffer()

FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "nothing.png": ("image.empty", lambda: b""),
    "page.png": ("image.not_an_image", lambda: b"<!DOCTYPE html><html><img src=x onerror=alert(1)></html>"),
    "text.jpg": ("image.not_an_image", lambda: b"this is not an image, it only says so" * 100),
    "program.gif": ("image.type_not_allowed", lambda: b"\x7fELF" + bytes(1000)),
    "drawing.svg": (
        "image.type_not_allowed",
        lambda: b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    ),
    "drawing.png": (
        "image.type_not_allowed",
        lambda: b'<?xml version="1.0"?><svg width="9"><image href="/etc/passwd"/></svg>',
    ),
    "paper.jpg": ("image.type_not_allowed", lambda: b"%PDF-1.7\n" + WHOLE_JPEG),
    "phone.heic": ("image.type_not_allowed", lambda: b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic" + bytes(99)),
    "script.gif": ("image.damaged", lambda: b"GIF89a/*" + bytes(8) + b"*/=1;alert(1)//;"),
    "bomb.png": ("image.too_many_pixels", lambda: png_bomb(50_000, 50_000)),
    "claims.jpg": ("image.too_many_pixels", lambda: claiming(plain(8, 8).jpegsave_buffer(), 65_500, 65_500)),
    "beyond.jpg": ("image.damaged", lambda: claiming(plain(8, 8).jpegsave_buffer(), 65_535, 65_535)),
    "claims.png": ("image.too_many_pixels", lambda: png_claiming(65_535, 65_535)),
    "hollow.png": ("image.damaged", lambda: png_claiming(9000, 9000)),
    "frames.gif": ("image.too_many_frames", lambda: gif_bomb(10, 10, 5000)),
    "half.jpg": ("image.truncated", lambda: WHOLE_JPEG[: len(WHOLE_JPEG) // 2]),
    "half.png": ("image.truncated", lambda: WHOLE_PNG[: len(WHOLE_PNG) // 2]),
    "half.webp": ("image.truncated", lambda: (data := noise(400, 300).webpsave_buffer())[: len(data) // 2]),
    "head.gif": ("image.truncated", lambda: animation(9, 200, 100).gifsave_buffer()[:30]),
    "half.avif": (
        "image.truncated",
        lambda: (data := noise(99, 99).heifsave_buffer(compression="av1"))[: len(data) // 2],
    ),
    "head.jpg": ("image.truncated", lambda: WHOLE_JPEG[:20]),
    "head.png": ("image.truncated", lambda: WHOLE_PNG[:20]),
    "rotten.png": ("image.damaged", lambda: WHOLE_PNG[:3000] + bytes(5000) + WHOLE_PNG[8000:]),
    "rotten.tif": ("image.damaged", lambda: b"II*\x00" + b"\xff" * 500),
}


@asynccontextmanager
async def bounded(bounds: Bounds) -> AsyncIterator[Maker]:
    """Give a maker with one child and tighter bounds."""
    async with open_maker(bounds, children=1) as maker:
        yield maker


async def still_works(maker: Maker, folder: Path) -> None:
    """Assert that the next image is made as if nothing had happened."""
    made = await maker.make(saved(folder, "next.png", plain(400, 300)), ALL, folder)
    assert [each.facts.width for each in made] == [300, 400, 400]


async def code_of(maker: Maker, source: Path) -> str:
    """Give the code with which all variants fail; no file of theirs is left behind."""
    before = set(source.parent.iterdir())
    with pytest.raises((BadImage, MakerFailed)) as refused:
        await maker.make(source, ALL, source.parent)
    assert set(source.parent.iterdir()) == before
    return refused.value.code


@pytest.mark.parametrize("name", FILES)
async def test_hostile_file(maker: Maker, tmp_path: Path, name: str) -> None:
    """It fails with its code, leaves no file behind, and the next image works."""
    code, data = FILES[name]
    source = written(tmp_path, name, data())
    assert await code_of(maker, source) == code
    with pytest.raises(BadImage) as refused:
        await maker.fit(source, Limits(frozenset({"image/jpeg"}), bytes=100), tmp_path)
    assert refused.value.code == code
    await still_works(maker, tmp_path)


async def test_header_alone_is_enough_for_facts(maker: Maker, tmp_path: Path) -> None:
    """Half a photograph still has a width, a height and an orientation; what is no image has none."""
    whole = turned(noise(400, 300), 6).jpegsave_buffer()
    facts = await maker.look(written(tmp_path, "half.jpg", whole[: len(whole) // 2]))
    assert facts == Facts("image/jpeg", 400, 300, 1, has_alpha=False, orientation=6, size=len(whole) // 2)
    with pytest.raises(BadImage):
        await maker.look(written(tmp_path, "page.png", b"<html>"))


async def test_refused_before_decoding_keeps_the_child(maker: Maker, tmp_path: Path) -> None:
    """A flood of files that are no images does not start a process for each."""
    source = written(tmp_path, "page.png", b"<html>")
    await code_of(maker, source)
    (child,) = maker._idle
    await code_of(maker, source)
    assert maker._idle == [child]
    await code_of(maker, written(tmp_path, "half.jpg", WHOLE_JPEG[:5000]))
    assert maker._idle == []


async def test_bomb_that_the_header_allows_runs_out_of_time(tmp_path: Path) -> None:
    """Where the pixels are allowed, the processor's time ends it."""
    source = written(tmp_path, "bomb.png", png_bomb(50_000, 50_000))
    async with bounded(Bounds(pixels=10**10, cpu_seconds=1)) as maker:
        assert await code_of(maker, source) == "image.too_slow"
        await still_works(maker, tmp_path)


async def test_memory_is_limited(tmp_path: Path) -> None:
    """An interlaced bomb must be held whole: memory is refused, and the child never had more than allowed."""
    source = written(tmp_path, "bomb.png", png_bomb(30_000, 30_000, interlaced=True, depth=8))
    most = 256 << 20
    async with bounded(Bounds(pixels=10**10, memory_bytes=most)) as maker:
        await still_works(maker, tmp_path)
        child = psutil.Process(maker._idle[0].pid)
        work = asyncio.create_task(code_of(maker, source))
        seen = 0
        while not work.done():
            try:
                seen = max(seen, child.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            await asyncio.sleep(0.002)
        assert await work == "image.too_much_memory"
        libraries = 96 << 20  # code of libraries is mapped, not counted as data
        assert 0 < seen < most + libraries
        assert maker.peak_bytes < most + libraries
        await still_works(maker, tmp_path)


async def test_memory_is_watched_where_it_cannot_be_limited(tmp_path: Path) -> None:
    """A child without a limit of its own is killed from outside when it has too much."""
    source = written(tmp_path, "bomb.png", png_bomb(20_000, 20_000, interlaced=True, depth=8))
    roomy = Bounds(pixels=10**10, memory_bytes=4 << 30)
    child = await ChildProcess.start(roomy, watched=True)
    child.bounds = replace(roomy, memory_bytes=128 << 20)
    async with open_maker(roomy, children=1) as maker:
        maker._idle.append(child)
        assert await code_of(maker, source) == "image.too_much_memory"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
async def test_child_dies_at_work(maker: Maker, tmp_path: Path, how: signal.Signals) -> None:
    """Killed in the middle of an image: a clear code for that one, and the next one works."""
    await still_works(maker, tmp_path)
    pid = maker._idle[0].pid
    busy = psutil.Process(pid)
    idle_time = busy.cpu_times().user
    work = asyncio.create_task(code_of(maker, written(tmp_path, "slow.png", png_bomb(9000, 9000, depth=8))))

    async def at_work() -> bool:
        return busy.cpu_times().user > idle_time + 0.05

    await until(at_work)
    os.kill(pid, how)
    assert await work == "image.crashed"
    await still_works(maker, tmp_path)
    assert maker.failures == 1


async def test_child_that_stands_still(tmp_path: Path) -> None:
    """A child that uses no time at all is ended by the clock on the wall."""
    async with bounded(Bounds(wall_seconds=3)) as maker:
        await still_works(maker, tmp_path)
        os.kill(maker._idle[0].pid, signal.SIGSTOP)
        assert await code_of(maker, saved(tmp_path, "a.png", plain(9, 9))) == "image.too_slow"
        await still_works(maker, tmp_path)


async def test_child_may_wait_as_long_as_it_likes(tmp_path: Path) -> None:
    """The clock of an image does not run between images."""
    async with bounded(Bounds(wall_seconds=2)) as maker:
        await still_works(maker, tmp_path)
        (child,) = maker._idle
        await asyncio.sleep(3.5)
        assert child.alive
        await still_works(maker, tmp_path)
        assert maker._idle == [child]


async def test_child_that_dies_while_idle(maker: Maker, tmp_path: Path) -> None:
    """Nobody's image is blamed for a child that died between two."""
    await still_works(maker, tmp_path)
    child = maker._idle[0]
    os.kill(child.pid, signal.SIGKILL)

    async def dead() -> bool:
        return not child.alive

    await until(dead)
    await still_works(maker, tmp_path)
    assert maker.failures == 0


async def test_cancelled_work_ends_its_child(maker: Maker, tmp_path: Path) -> None:
    """Who no longer waits leaves no process behind at work."""
    await still_works(maker, tmp_path)
    pid = maker._idle[0].pid
    work = asyncio.create_task(maker.make(written(tmp_path, "slow.png", png_bomb(9000, 9000)), ALL, tmp_path))
    await asyncio.sleep(0.1)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert not psutil.pid_exists(pid)
    await still_works(maker, tmp_path)


async def test_child_is_replaced_after_its_share(tmp_path: Path) -> None:
    """After its number of images a child makes room for a new one."""
    async with bounded(Bounds(images_per_child=2)) as maker:
        source = saved(tmp_path, "a.png", plain(9, 9))
        pids = []
        for _ in range(5):
            await maker.look(source)
            pids.append(maker._idle[0].pid if maker._idle else 0)
        assert [bool(pid) for pid in pids] == [True, False, True, False, True]
        assert len(set(pids)) == 4
        assert maker.failures == 0


async def test_many_ask_at_once(tmp_path: Path) -> None:
    """Eight requests share two children, and one bad image fails alone."""
    good = saved(tmp_path, "a.jpg", noise(800, 600))
    bad = written(tmp_path, "half.jpg", WHOLE_JPEG[:5000])
    async with open_maker(Bounds(), children=2) as maker:
        tasks = [asyncio.create_task(maker.make(bad if at == 3 else good, ALL, tmp_path)) for at in range(8)]
        most = 0
        while not all(task.done() for task in tasks):
            most = max(most, len(_children()))
            await asyncio.sleep(0.01)
        results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results.pop(3), BadImage)
    hashes = {tuple(each.sha256 for each in made) for made in results if isinstance(made, list)}
    assert len(hashes) == 1
    assert len(results) == 7
    assert 1 <= most <= 2
    assert _children() == []


def _children() -> list[int]:
    found = []
    for process in psutil.Process().children():
        try:
            if "imprint.images.child" in process.cmdline():
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


async def test_child_dies_with_its_parent() -> None:
    """A child whose socket is closed goes by itself."""
    child = await ChildProcess.start(Bounds())
    child._link.close()
    assert await asyncio.wait_for(child._process.wait(), 10) == 0
    await child._listening


# Starts long work, says which process does it, and waits to be killed.
PARENT = """
import asyncio, sys
from pathlib import Path
from imprint.images.bounds import Bounds
from imprint.images.maker import open_maker
from imprint.images.recipes import FULL

async def main():
    source = Path(sys.argv[1])
    async with open_maker(Bounds(pixels=10**10), children=1) as maker:
        await maker.look(source)
        print(maker._idle[0].pid, flush=True)
        await maker.make(source, [FULL], source.parent)

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the child finishes its image first")
async def test_child_at_work_dies_with_its_parent(tmp_path: Path) -> None:
    """A parent that is killed takes the child along, in the middle of an image."""
    source = written(tmp_path, "bomb.png", png_bomb(50_000, 50_000))
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(source), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = psutil.Process(int(await parent.stdout.readline()))
    idle_time = child.cpu_times().user

    async def at_work() -> bool:
        return child.cpu_times().user > idle_time + 0.05

    async def dead() -> bool:
        try:
            return child.status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    await until(at_work)
    parent.kill()
    await parent.wait()
    await until(dead, seconds=2)


async def test_child_that_cannot_start_is_no_fault_of_the_image(
    maker: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that dies at its start says that the maker is not available."""
    source = saved(tmp_path, "a.png", plain(9, 9))
    for program in (shutil.which("false"), "/no/such/program"):
        monkeypatch.setattr(sys, "executable", program)
        with pytest.raises(Unavailable) as refused:
            await maker.look(source)
        assert refused.value.code == "image.no_child"
    monkeypatch.undo()
    await still_works(maker, tmp_path)


def test_what_a_child_writes_is_checked(tmp_path: Path) -> None:
    """A child that is no longer itself cannot pass a page for a picture, nor lie about its size."""
    said = Facts("image/webp", 1, 1, 1, has_alpha=False, orientation=1, size=7)
    with Outputs(tmp_path, 1) as outputs:
        os.write(outputs.descriptors[0], data := plain(1, 1).webpsave_buffer())
        (made,) = outputs.keep([(("full", 1), said)])
    assert made.facts.size == len(data)
    assert made.path.exists()
    outputs = Outputs(tmp_path, 1)
    with pytest.raises(ValueError, match="type"):
        _write_a_page(outputs, said)
    assert list(tmp_path.iterdir()) == [made.path]


def _write_a_page(outputs: Outputs, said: Facts) -> None:
    with outputs:
        os.write(outputs.descriptors[0], b"<script>")
        outputs.keep([(("full", 1), said)])


@pytest.mark.parametrize("said", [None, {}, {"type": 7}, {"width": 0}, {"height": "9"}, {"frames": -1}])
def test_what_a_child_says_is_checked(said: dict[str, object] | None) -> None:
    """Facts that cannot be ones are not taken."""
    whole = {"type": "image/webp", "width": 1, "height": 1, "frames": 1}
    whole |= {"has_alpha": False, "orientation": 1, "size": 7}
    assert Facts.heard(whole).width == 1
    with pytest.raises((TypeError, ValueError)):
        Facts.heard(whole | said if said else said)


def test_limits_of_this_process_are_untouched() -> None:
    """Only children are confined."""
    assert resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY
