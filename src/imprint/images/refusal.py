"""A refusal: why an image could not be worked on, as a code that never changes and a sentence for people."""

from types import MappingProxyType

from imprint.problem import Problem

# Decided from the first bytes and the header: nothing was decoded, so the child is as good as before.
BEFORE_DECODING = MappingProxyType(
    {
        "image.empty": "The file has no bytes.",
        "image.not_an_image": "The file is not an image, whatever its name says.",
        "image.type_not_allowed": "Files of this type are not taken; JPEG, PNG, WebP, GIF, TIFF and AVIF are.",
        "image.too_many_pixels": "The image has more pixels than allowed.",
        "image.too_many_frames": "The animation has more frames than allowed.",
    }
)
WHILE_DECODING = MappingProxyType(
    {
        "image.truncated": "The file ends before the image does.",
        "image.damaged": "The image cannot be decoded.",
        "image.cannot_fit": "No rendition of this image fits the limits.",
    }
)
OF_THE_CHILD = MappingProxyType(
    {
        "image.too_much_memory": "The image needed more memory than one image may use.",
        "image.too_slow": "The image needed more time than one image may take.",
        "image.crashed": "The process that worked on the image died.",
    }
)


class BadImage(Problem):
    """The file itself is the reason: to try again gives the same answer."""


class MakerFailed(Problem):
    """The child died or was ended over an image: a second try may go better, a third hardly will."""


class Refusal(Exception):  # noqa: N818 - a noun of this room, like Problem
    """Raised in the child; crosses to the parent as its code alone."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def problem(code: str) -> Problem:
    """Make the problem of a code; one that is not known can only come from a child that is no longer itself."""
    if code in BEFORE_DECODING:
        return BadImage(code, BEFORE_DECODING[code])
    if code in WHILE_DECODING:
        return BadImage(code, WHILE_DECODING[code])
    known = code if code in OF_THE_CHILD else "image.crashed"
    return MakerFailed(known, OF_THE_CHILD[known])
