"""How does a figure reach a reader who can't see it?  A Picture is an image and the same content as text.

A notebook stores both: the image with its alternative text, and the text twin as `text/plain`, which is what a diff
shows and what `pytest --nbval` compares.  The image itself is never compared.  JupyterLab shows the image, forgets the
alternative text and hides the twin; so the twin follows the picture once more, to be unfolded and read aloud.
"""

import base64
import io
import re
import struct
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 160  # of the file; it is shown at SHOWN_PER_INCH, so that it is sharp on a good screen and in print
SHOWN_PER_INCH = 96
COLOURS = 128  # of the palette: a figure of flat colours looks the same, at a third of the bytes


class Picture(NamedTuple):
    """An image, what it says in one or two sentences, and all of it as text."""

    png: bytes
    alt: str
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    @property
    def shown_width(self) -> int:
        """The width at which a page shows it, in pixels: read off the file's header."""
        pixels = struct.unpack(">I", self.png[16:20])[0]
        return round(pixels * SHOWN_PER_INCH / DOTS_PER_INCH)

    @property
    def unfolds(self) -> str:
        """The text, to be unfolded under the picture on a page."""
        return f"<details><summary>the same as text</summary><pre>{escape(self.text)}</pre></details>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict[str, str], dict[str, Any]]:
        data = {"image/png": base64.b64encode(self.png).decode(), "text/plain": self.text}
        return data, {"image/png": {"alt": self.alt, "width": self.shown_width}}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        data, metadata = self._repr_mimebundle_()
        display(data, metadata=metadata, raw=True)
        display({"text/html": self.unfolds, "text/plain": "(the same as text)"}, raw=True)


def draw(figure: "Figure", alt: str, text: str) -> Picture:
    """The Picture of a figure: the same figure gives the same bytes."""
    return Picture(png(figure), " ".join(alt.split()), tidy(text))


def png(figure: "Figure") -> bytes:
    """The figure as a PNG with a palette; written anew, so that it has no word about who drew it with what."""
    from PIL import Image

    full, small = io.BytesIO(), io.BytesIO()
    figure.savefig(full, format="png", dpi=DOTS_PER_INCH)
    image = Image.open(full).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(small, format="png", optimize=True)
    return small.getvalue()


def tidy(text: str) -> str:
    """The text without blanks at the ends of lines."""
    return re.sub(r"[ \t]+$", "", text.strip("\n"), flags=re.MULTILINE)
