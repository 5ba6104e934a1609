"""How does a notebook show text and tables?  A text as it stands, line breaks and all; a table set from the left."""

import re
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Text(NamedTuple):
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def tabular(made: type[T]) -> type[T]:
    """Decorates a class whose values have a `frame()`: they are shown as that table, by print and in a notebook."""

    def text(self: Any) -> str:
        return str(self.frame().to_string())

    def html(self: Any) -> str:
        return as_html(self.frame())

    for name, shown in {"__str__": text, "__repr__": text, "_repr_html_": html}.items():
        setattr(made, name, shown)
    return made


def as_html(frame: "pd.DataFrame") -> str:
    """A table of words, set from the left; a notebook would set it from the right, as it does numbers."""
    html = re.sub(r"<(t[dh])>", r'<\1 style="text-align: left">', frame.to_html(border=0))
    return str(html.replace('<tr style="text-align: right;">', "<tr>"))
