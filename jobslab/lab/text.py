"""How does a notebook show a text as it stands, line breaks and all?"""

from typing import NamedTuple


class Text(NamedTuple):
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text
