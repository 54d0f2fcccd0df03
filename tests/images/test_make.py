"""Every variant is right: its size, its colours, its transparency, its frames, and nothing private in it."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from imprint.images.made import Made
from imprint.images.maker import Maker
from imprint.images.recipes import FULL, PREVIEW, RECIPES, THUMBNAIL
from imprint.images.spool import spooled
from tests.images.pictures import (
    BLUE,
    CORNERS,
    GREEN,
    RED,
    animation,
    beside,
    colour_at,
    corners,
    gif_bomb,
    located,
    near,
    noise,
    opened,
    plain,
    profiled,
    saved,
    turned,
    written,
)

ALL = (THUMBNAIL, PREVIEW, FULL)


async def made_of(maker: Maker, source: Path) -> tuple[Made, Made, Made]:
    """Make thumbnail, preview and full beside the source."""
    thumbnail, preview, full = await maker.make(source, ALL, source.parent)
    return thumbnail, preview, full


async def colour_of(maker: Maker, source: Path) -> list[int]:
    """Make the full variant and give the colour of its middle."""
    (full,) = await maker.make(source, [FULL], source.parent)
    return colour_at(opened(full.path), 0.5, 0.5)


async def test_three_variants_of_a_photograph(maker: Maker, tmp_path: Path) -> None:
    """Each has its longest edge, its real size and hash, and is a WebP; nothing else is left in the folder."""
    source = saved(tmp_path, "a.jpg", noise(3000, 1500))
    made = await made_of(maker, source)
    assert [(each.variant, each.version) for each in made] == [(r.variant, r.version) for r in RECIPES.values()]
    assert [(each.facts.width, each.facts.height) for each in made] == [(300, 150), (1024, 512), (2048, 1024)]
    for each in made:
        data = each.path.read_bytes()
        image = opened(each.path)
        assert (image.width, image.height) == (each.facts.width, each.facts.height)
        assert (each.facts.type, each.facts.frames, each.facts.size) == ("image/webp", 1, len(data))
        assert each.sha256 == hashlib.sha256(data).hexdigest()
    assert set(tmp_path.iterdir()) == {source, *(each.path for each in made)}


async def test_never_enlarged(maker: Maker, tmp_path: Path) -> None:
    """What is smaller than a variant keeps its size."""
    made = await made_of(maker, saved(tmp_path, "a.png", corners(500, 400)))
    assert [(each.facts.width, each.facts.height) for each in made] == [(300, 240), (500, 400), (500, 400)]
    made = await made_of(maker, saved(tmp_path, "b.png", plain(1, 1)))
    assert {(each.facts.width, each.facts.height) for each in made} == {(1, 1)}


@pytest.mark.parametrize("orientation", range(1, 9))
async def test_exif_orientation(maker: Maker, tmp_path: Path, orientation: int) -> None:
    """All eight ways to store a picture give the same upright one, with its corners where they belong."""
    source = saved(tmp_path, "a.jpg", turned(corners(600, 400), orientation))
    facts = await maker.look(source)
    assert (facts.orientation, facts.width, facts.height) == (orientation, 600, 400)
    for each in await made_of(maker, source):
        image = opened(each.path)
        assert image.width > image.height
        assert "orientation" not in image.get_fields()
        for colour, (x, y) in zip(CORNERS, [(0, 0), (1, 0), (0, 1), (1, 1)], strict=True):
            assert near(colour_at(image, 0.1 + 0.8 * x, 0.1 + 0.8 * y), colour), (orientation, x, y)


async def test_profile_is_applied(maker: Maker, tmp_path: Path) -> None:
    """Colours said in Display P3 come out as the same colours said in sRGB."""
    source = saved(tmp_path, "a.png", plain(64, 64).icc_transform("p3", input_profile="srgb"))
    assert colour_at(opened(source), 0.5, 0.5)[1] > 40  # P3 says this red with some green
    assert near(await colour_of(maker, source), RED, by=8)


async def test_profile_that_is_broken_is_not_the_end(maker: Maker, tmp_path: Path) -> None:
    """A profile that cannot be read is taken for sRGB."""
    image = profiled(plain(64, 64), b"no profile at all" * 20)
    assert near(await colour_of(maker, saved(tmp_path, "a.jpg", image)), RED)


@pytest.mark.parametrize("keep", ["all", "none"])
async def test_cmyk(maker: Maker, tmp_path: Path, keep: str) -> None:
    """A JPEG for print is shown in its colours, with and without a profile inside."""
    blue = (40, 60, 160)  # print cannot show the brightest colours
    image = plain(64, 64, blue).icc_transform("cmyk", input_profile="srgb")
    source = saved(tmp_path, "a.jpg", image, keep=keep, Q=95)
    assert opened(source).interpretation == "cmyk"
    assert near(await colour_of(maker, source), blue, by=30)


async def test_sixteen_bit(maker: Maker, tmp_path: Path) -> None:
    """16 bits a channel become 8 without a shift in brightness, grey and coloured."""
    for colour in [(20, 120, 220), (77,)]:
        deep = (plain(64, 64, colour).cast("ushort") * 257).cast("ushort")
        deep = deep.copy(interpretation="rgb16" if len(colour) == 3 else "grey16")
        source = saved(tmp_path, f"{len(colour)}.png", deep)
        assert opened(source).format == "ushort"
        assert near(await colour_of(maker, source), colour if len(colour) == 3 else colour * 3, by=4)


@pytest.mark.parametrize("colour", [(10, 200, 30, 128), (90, 128)])
async def test_transparency_is_kept(maker: Maker, tmp_path: Path, colour: tuple[int, ...]) -> None:
    """Half transparent stays half transparent, in colour and in grey, in every variant."""
    image = plain(600, 600, colour)
    source = saved(tmp_path, "a.png", image)
    assert (await maker.look(source)).has_alpha
    for each in await made_of(maker, source):
        assert each.facts.has_alpha
        found = colour_at(opened(each.path), 0.5, 0.5)
        assert near(found, colour if len(colour) == 4 else (90, 90, 90, 128), by=6)


async def test_transparency_that_is_none_is_dropped(maker: Maker, tmp_path: Path) -> None:
    """A picture that says it is transparent and is nowhere so needs no fourth channel."""
    source = saved(tmp_path, "a.png", plain(600, 600, (10, 200, 30, 255)))
    assert (await maker.look(source)).has_alpha
    for each in await made_of(maker, source):
        assert not each.facts.has_alpha
        assert near(colour_at(opened(each.path), 0.5, 0.5), (10, 200, 30), by=6)


async def test_transparent_edges_have_no_fringe(maker: Maker, tmp_path: Path) -> None:
    """Colour that nobody sees does not bleed into what is seen when the picture shrinks."""
    image = beside(plain(601, 1200, (255, 255, 255, 255)), plain(601, 1200, (0, 255, 0, 0)))
    (thumbnail,) = await maker.make(saved(tmp_path, "a.png", image), [THUMBNAIL], tmp_path)
    seen = [colour_at(opened(thumbnail.path), x / 300, 0.5) for x in range(140, 160)]
    assert all(red > 235 and blue > 235 for red, _, blue, alpha in seen if alpha > 128)


@pytest.mark.parametrize("name", ["a.gif", "a.webp"])
async def test_animation(maker: Maker, tmp_path: Path, name: str) -> None:
    """An animation stays one in preview and full, with its times and repeats; its thumbnail is the first frame."""
    source = saved(tmp_path, name, animation(6, 1200, 600))
    assert (await maker.look(source)).frames == 6
    thumbnail, preview, full = await made_of(maker, source)
    assert [each.facts.frames for each in (thumbnail, preview, full)] == [1, 6, 6]
    assert (thumbnail.facts.width, thumbnail.facts.height) == (300, 150)
    assert (preview.facts.width, preview.facts.height) == (1024, 512)
    assert (full.facts.width, full.facts.height) == (1200, 600)
    assert near(colour_at(opened(thumbnail.path), 0.5, 0.5)[:3], (0, 0, 0))
    for each in (preview, full):
        image = opened(each.path, animated=True)
        assert image.get("n-pages") == 6
        assert image.get("delay") == [50] * 6
        assert image.get("loop") == 3
        assert near(colour_at(image, 0.5, 0.99)[:3], RED)
        assert near(colour_at(image, 0.5, 0.01)[:3], (0, 0, 0))


async def test_animation_that_is_too_large_to_animate(maker: Maker, tmp_path: Path) -> None:
    """A thousand large frames become the first one: it is a picture after all."""
    made = await made_of(maker, written(tmp_path, "a.gif", gif_bomb(2000, 2000, 1000)))
    assert [each.facts.frames for each in made] == [1, 1, 1]


async def test_nothing_private_is_left(maker: Maker, tmp_path: Path) -> None:
    """The place, the photographer and the profile are gone."""
    source = saved(tmp_path, "a.jpg", located(plain(64, 64)).icc_transform("p3", input_profile="srgb"))
    assert "exif-ifd3-GPSLatitude" in opened(source).get_fields()
    assert b"SOMEBODY PRIVATE" in source.read_bytes()
    for each in await made_of(maker, source):
        data = each.path.read_bytes()
        assert not any(word in data for word in (b"PRIVATE", b"Exif", b"EXIF", b"XMP ", b"ICCP"))
        assert not [name for name in opened(each.path).get_fields() if name.startswith(("exif", "xmp", "icc"))]


async def test_the_longest_edge_there_is(maker: Maker, tmp_path: Path) -> None:
    """65,535 pixels by one is an image like any other."""
    for name in ("a.png", "a.jpg"):
        made = await made_of(maker, saved(tmp_path, name, plain(65_500 if name == "a.jpg" else 65_535, 1)))
        assert [(each.facts.width, each.facts.height) for each in made] == [(300, 1), (1024, 1), (2048, 1)]


async def test_other_types_that_are_taken(maker: Maker, tmp_path: Path) -> None:
    """TIFF and AVIF are read; so is a name that says something else."""
    tiff = saved(tmp_path, "a.tif", plain(400, 300, BLUE))
    avif = saved(tmp_path, "a.avif", plain(400, 300, GREEN), effort=0)
    renamed = written(tmp_path, "really-a.png", plain(400, 300, RED).jpegsave_buffer())
    assert near(await colour_of(maker, tiff), BLUE)
    assert near(await colour_of(maker, avif), GREEN)
    assert (await maker.look(renamed)).type == "image/jpeg"
    assert near(await colour_of(maker, renamed), RED)


async def test_polyglot_leaves_only_the_picture(maker: Maker, tmp_path: Path) -> None:
    """What else a file is, a script or a page, does not come along."""
    script = b"<script>alert('polyglot')</script>"
    for source in (
        written(tmp_path, "a.gif", plain(32, 32).gifsave_buffer() + script),
        written(tmp_path, "a.jpg", plain(32, 32).jpegsave_buffer() + b"%PDF-1.7" + script),
    ):
        for each in await made_of(maker, source):
            assert b"polyglot" not in each.path.read_bytes()


async def test_bytes_are_spooled_and_hashed(maker: Maker, tmp_path: Path) -> None:
    """A stream becomes a file with its hash, lives as long as it is needed, and is gone."""
    data = noise(200, 100).jpegsave_buffer()

    async def chunks() -> Any:
        for at in range(0, len(data), 1000):
            yield data[at : at + 1000]

    async with spooled(chunks(), tmp_path) as spool:
        assert (spool.size, spool.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert (await maker.look(spool.path)).width == 200
    assert list(tmp_path.iterdir()) == []
