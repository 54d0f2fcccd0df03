"""A rendition fits its limits, is as large as they allow, and is made only when it is needed."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from math import ceil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from imprint.images.bounds import Bounds
from imprint.images.facts import Facts
from imprint.images.fit import LEAST, LONGEST_EDGE, Limits, Way, fits, largest, search, ways
from imprint.images.made import Made
from imprint.images.maker import Maker, open_maker
from imprint.images.refusal import BadImage
from tests.images.pictures import CORNERS, animation, colour_at, corners, near, noise, opened, plain, saved, turned

TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif"]
LIMITS = st.builds(
    Limits,
    types=st.frozensets(st.sampled_from([*TYPES, "image/avif", "image/tiff", "video/mp4"])),
    bytes=st.none() | st.integers(0, 200_000),
    edge=st.none() | st.integers(0, 500),
    pixels=st.none() | st.integers(0, 200_000),
)
FACTS = st.builds(
    Facts,
    type=st.sampled_from([*TYPES, "image/tiff", "image/avif"]),
    width=st.integers(1, 70_000),
    height=st.integers(1, 70_000),
    frames=st.sampled_from([1, 1, 2, 3000]),
    has_alpha=st.booleans(),
    orientation=st.just(1),
    size=st.integers(1, 10**9),
)
PHOTO = Facts("image/jpeg", 4000, 3000, 1, has_alpha=False, orientation=1, size=8_000_000)


@given(FACTS, LIMITS)
@example(replace(PHOTO, width=65_535, height=1), Limits(frozenset(TYPES), pixels=7))
def test_every_way_is_within_the_limits(facts: Facts, limits: Limits) -> None:
    """What is tried is of an allowed type, has an allowed size, is never enlarged, and keeps its shape."""
    for way in ways(facts, limits, animated_pixels=50_000_000):
        assert way.type in limits.types
        assert (way.width, way.height) == largest(facts, limits, way.type)
        assert 1 <= way.width <= facts.width
        assert 1 <= way.height <= facts.height
        assert max(way.width, way.height) <= min(LONGEST_EDGE[way.type], limits.edge or 10**9)
        assert limits.pixels is None or way.width * way.height <= limits.pixels
        if min(way.width, way.height) > 20:
            assert way.width / way.height == pytest.approx(facts.width / facts.height, rel=0.06)
        assert not way.animated or way.width * way.height * facts.frames <= 50_000_000


@given(FACTS, LIMITS)
def test_the_size_is_the_largest(facts: Facts, limits: Limits) -> None:
    """One pixel more in both directions is more than allowed, or more than there is."""
    size = largest(facts, limits, "image/png")
    assume(size is not None and min(size) > 1)
    assert size is not None
    width, height = size[0] + 2, size[1] + 2
    assert (
        width > facts.width
        or height > facts.height
        or (limits.edge is not None and max(width, height) > limits.edge)
        or max(width, height) > LONGEST_EDGE["image/png"]
        or (limits.pixels is not None and width * height > limits.pixels)
    )


@given(
    way=st.builds(
        Way,
        type=st.sampled_from(TYPES),
        width=st.integers(1, 3000),
        height=st.integers(1, 3000),
        animated=st.just(value=False),
        once=st.booleans(),
    ),
    limit=st.none() | st.integers(0, 3_000_000),
    overhead=st.integers(0, 5000),
    density=st.floats(0.01, 4),
)
def test_search(way: Way, limit: int | None, overhead: int, density: float) -> None:
    """Whatever the bytes follow, what is found fits, with few encodes, and is not needlessly small."""
    tried = 0

    def encode(width: int, height: int, quality: int) -> bytes:
        nonlocal tried
        tried += 1
        assert width <= way.width
        assert height <= way.height
        return bytes(overhead + ceil(width * height * density * (quality / 100)))

    found = search(way, limit, encode)
    assert tried <= 10
    if found is None:
        assert limit is not None
        assert way.once or limit < overhead + ceil(density * LEAST / 100) * 40
        return
    assert limit is None or len(found.data) <= limit
    if limit is not None and limit > 4 * overhead and min(found.width, found.height) > 30:
        best = len(found.data) >= 0.5 * limit
        assert best or (found.width, found.height) == (way.width, way.height)


@pytest.mark.parametrize(
    ("facts", "types", "chosen"),
    [
        (PHOTO, TYPES, ["image/jpeg"]),
        (PHOTO, ["image/png", "image/webp"], ["image/webp"]),
        (PHOTO, ["image/gif", "image/png"], ["image/png"]),
        (replace(PHOTO, type="image/avif"), TYPES, ["image/webp"]),
        (replace(PHOTO, type="image/avif"), ["image/jpeg", "image/png"], ["image/jpeg"]),
        (replace(PHOTO, type="image/png"), TYPES, ["image/png", "image/webp"]),
        (replace(PHOTO, type="image/png", size=90_000_000), TYPES, ["image/webp"]),
        (replace(PHOTO, type="image/png", has_alpha=True), ["image/jpeg", "image/png"], ["image/png"]),
        (replace(PHOTO, type="image/png", has_alpha=True), ["image/jpeg"], ["image/jpeg"]),
        (replace(PHOTO, type="image/gif", frames=3), TYPES, ["image/webp"]),
        (replace(PHOTO, type="image/gif", frames=3), ["image/gif", "image/jpeg"], ["image/gif"]),
        (replace(PHOTO, type="image/gif", frames=3), ["image/jpeg"], ["image/jpeg"]),
        (PHOTO, ["video/mp4"], []),
        (PHOTO, [], []),
    ],
)
def test_types_in_order(facts: Facts, types: list[str], chosen: list[str]) -> None:
    """The type that loses least comes first; without loss only where the bytes may do."""
    found = ways(facts, Limits(frozenset(types), bytes=5_000_000, edge=2000), animated_pixels=50_000_000)
    assert [way.type for way in found] == chosen


def test_limits_name_their_variant() -> None:
    """The same limits have the same name, whatever the order; others have another."""
    one = Limits(frozenset(["image/jpeg", "image/png"]), bytes=9)
    assert one.variant == Limits(frozenset(["image/png", "image/jpeg"]), bytes=9).variant
    assert len({one.variant, replace(one, bytes=8).variant, replace(one, edge=9).variant}) == 3


class Studio:
    """Originals of several kinds, and a maker that stays warm over all examples of a property."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.folder = folder
        self.originals = [
            saved(folder, "photo.jpg", noise(400, 300)),
            saved(folder, "drawing.png", corners(400, 200)),
            saved(folder, "glass.png", plain(300, 300, (10, 200, 30, 128))),
            saved(folder, "moving.gif", animation(4, 120, 90)),
            saved(folder, "small.webp", noise(50, 60)),
            saved(folder, "line.png", plain(2000, 1)),
        ]
        self._opened = open_maker(Bounds(), children=1)
        self.maker: Maker = self.runner.run(self._opened.__aenter__())

    def fitted(self, source: Path, limits: Limits) -> Made | BadImage | None:
        """Ask for a rendition and give whatever comes of it."""
        try:
            return self.runner.run(self.maker.fit(source, limits, self.folder))
        except BadImage as refused:
            return refused

    def close(self) -> None:
        """End the maker."""
        self.runner.run(self._opened.__aexit__(None, None, None))
        self.runner.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """Give one studio for the whole file."""
    opened_studio = Studio(tmp_path_factory.mktemp("studio"))
    yield opened_studio
    opened_studio.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 5), limits=LIMITS)
def test_result_fits(studio: Studio, which: int, limits: Limits) -> None:
    """The original fits and nothing is made, or what is made fits, or a clear code says that nothing can."""
    source = studio.originals[which]
    facts = studio.runner.run(studio.maker.look(source))
    before = source.read_bytes()
    made = studio.fitted(source, limits)
    if isinstance(made, BadImage):
        assert made.code == "image.cannot_fit"
        assert not fits(facts, limits)
        tiny = limits.bytes is not None and limits.bytes < 1000
        assert not limits.types & set(TYPES) or 0 in (limits.edge, limits.pixels) or tiny
    else:
        assert (made is None) == fits(facts, limits)
    if isinstance(made, Made):
        assert fits(made.facts, limits)
        assert made.variant == limits.variant
        seen = studio.runner.run(studio.maker.look(made.path))
        assert replace(seen, has_alpha=False) == replace(made.facts, has_alpha=False)
        assert seen.width <= facts.width
        assert seen.height <= facts.height
        made.path.unlink()
    assert source.read_bytes() == before
    assert set(studio.folder.iterdir()) == set(studio.originals)


async def test_a_large_photograph_for_a_small_place(maker: Maker, tmp_path: Path) -> None:
    """It is upright, near the limit of bytes, and of the same type."""
    source = saved(tmp_path, "a.jpg", turned(corners(2400, 1600), 6))
    made = await maker.fit(source, Limits(frozenset({"image/jpeg", "image/png"}), bytes=10**6, edge=900), tmp_path)
    assert made is not None
    assert (made.facts.type, made.facts.width, made.facts.height) == ("image/jpeg", 900, 600)
    for colour, (x, y) in zip(CORNERS, [(0, 0), (1, 0), (0, 1), (1, 1)], strict=True):
        assert near(colour_at(opened(made.path), 0.1 + 0.8 * x, 0.1 + 0.8 * y), colour)
    source = saved(tmp_path, "b.jpg", noise(1200, 900))
    made = await maker.fit(source, Limits(frozenset({"image/jpeg"}), bytes=60_000), tmp_path)
    assert made is not None
    assert 0.7 * 60_000 <= made.path.stat().st_size <= 60_000


async def test_transparency_becomes_white_only_where_it_must(maker: Maker, tmp_path: Path) -> None:
    """A place that only takes JPEG shows white behind what was transparent."""
    source = saved(tmp_path, "a.png", plain(100, 100, (255, 0, 0, 128)))
    made = await maker.fit(source, Limits(frozenset({"image/jpeg"})), tmp_path)
    assert made is not None
    assert not made.facts.has_alpha
    assert near(colour_at(opened(made.path), 0.5, 0.5), (255, 127, 127))


async def test_animation_stays_one_where_it_may(maker: Maker, tmp_path: Path) -> None:
    """A GIF for a place with smaller edges keeps its frames and its times."""
    source = saved(tmp_path, "a.gif", animation(5, 300, 200))
    for kind in ("image/gif", "image/webp"):
        made = await maker.fit(source, Limits(frozenset({kind}), edge=150), tmp_path)
        assert made is not None
        assert (made.facts.type, made.facts.frames, made.facts.width, made.facts.height) == (kind, 5, 150, 100)
        assert opened(made.path).get("delay") == [50] * 5
