"""How does a notebook show text and tables?  A text as it stands, line breaks and all; a table set from the left."""

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd


class Text(NamedTuple):
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def as_html(frame: "pd.DataFrame") -> str:
    """A table of words, set from the left; a notebook would set it from the right, as it does numbers."""
    html = re.sub(r"<(t[dh])>", r'<\1 style="text-align: left">', frame.to_html(border=0))
    return str(html.replace('<tr style="text-align: right;">', "<tr>"))
