"""How does a person read the API in a browser, without a network?  /docs: the OpenAPI document as one plain page.

No script and no style sheet from elsewhere, so it is there in a workshop room without Wi-Fi too.
"""

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h2 { margin: 2.5rem 0 0; font-size: 1.15rem; border-top: 1px solid #ccc; padding-top: 1rem; }
code, pre { font: 14px/1.4 ui-monospace, monospace; background: #f4f4f4; border-radius: 3px; }
code { padding: 0 .2em; } pre { padding: .7rem; overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; } td { padding: .15rem 1rem .15rem 0; vertical-align: top; }
"""


def page(openapi: dict[str, Any]) -> str:
    """The HTML of the whole document."""
    title = escape(openapi["info"]["title"])
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
        f"<h1>{title}</h1>{prose(openapi['info'].get('description', ''))}"
        f'<p>For programs: <a href="/openapi.json">/openapi.json</a></p>{"".join(operations(openapi))}</html>'
    )


def operations(openapi: dict[str, Any]) -> Iterator[str]:
    for path, methods in openapi["paths"].items():
        for method, operation in methods.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
            yield prose(operation.get("description") or operation.get("summary", ""))
            yield table([(p["name"], p["in"], p.get("description", "")) for p in operation.get("parameters", [])])
            for content in operation.get("requestBody", {}).get("content", {}).values():
                yield f"<pre>{escape(json.dumps(content.get('example'), indent=2))}</pre>"
            yield table([(code, answer["description"]) for code, answer in sorted(operation["responses"].items())])


def table(rows: list[tuple[str, ...]]) -> str:
    """The rows, their first cell as code."""
    cells = [
        f"<td><code>{escape(row[0])}</code></td>{''.join(f'<td>{inline(c)}</td>' for c in row[1:])}" for row in rows
    ]
    return f"<table>{''.join(f'<tr>{cell}</tr>' for cell in cells)}</table>" if rows else ""


def prose(text: str) -> str:
    """Paragraphs and lists of a Markdown text."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return "".join(items(block) if block.startswith("- ") else f"<p>{inline(block)}</p>" for block in blocks if block)


def items(block: str) -> str:
    return f"<ul>{''.join(f'<li>{inline(item)}</li>' for item in re.split(r'(?m)^- ', block)[1:])}</ul>"


def inline(text: str) -> str:
    """Code, bold and links to problems within a line."""
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    return re.sub(r"\[([^]]+)\]\((/[^)\s]*)\)", r'<a href="\2">\1</a>', html)
