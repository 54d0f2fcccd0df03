"""A painting is a picture that libvips can read, the same for the same title."""

import pyvips

from imprint.work.painting import HEIGHT, WIDTH, painting


def test_a_painting_is_a_picture() -> None:
    """PNG of its size, with a sun in it; another title is another picture."""
    made = pyvips.Image.new_from_buffer(painting("Low tide"), "")
    assert (made.width, made.height, made.bands) == (WIDTH, HEIGHT, 3)
    assert made.max() == 255
    assert painting("Low tide") == painting("Low tide") != painting("High tide")
