"""The page of progressive disclosure: plain HTML without scripts. Memories are shown as text, whatever they contain."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

from recallog_schemas.views import AroundView, EntriesView, Preview, SearchHit, SearchPage

HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
}

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Memory viewer</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
input {{ font: inherit; padding: .3rem .5rem }} li {{ margin: .5rem 0 }} small {{ color: #666 }}
pre {{ white-space: pre-wrap; background: #f5f5f5; padding: .8rem }} .here {{ background: #fff6d6 }}
</style></head><body><h1>Memory viewer</h1>
<form action="viewer"><input name="space" placeholder="space" required value="{space}">
<input name="agent" placeholder="agent" value="{agent}"><input name="q" placeholder="question" size="40" value="{q}">
<button>Search</button></form>
{content}
</body></html>
"""


def page(given: Mapping[str, str], found: Mapping[str, Any]) -> bytes:
    """The page that shows the answers of the stages to the arguments `given`."""
    parts = []
    if (hits := found.get("search-index")) is not None:
        parts.append(_hits(given, hits))
    if (around := found.get("search-timeline")) is not None:
        parts.append(_around(given, around))
    if (entries := found.get("entries")) is not None:
        parts.append(_entries(entries))
    named = {name: escape(given.get(name, "")) for name in ("space", "agent", "q")}
    return _PAGE.format(**named, content="\n".join(parts)).encode()


def _hits(given: Mapping[str, str], hits: SearchPage) -> str:
    return f"<h2>Previews</h2>{_list(_line(given, hit) for hit in hits.hits)}"


def _around(given: Mapping[str, str], around: AroundView) -> str:
    lines = (_line(given, each, here=each is around.anchor) for each in around.events)
    return f"<h2>Around it</h2>{_list(lines)}"


def _entries(entries: EntriesView) -> str:
    texts = (f"<pre>{escape(each.text)}</pre><small>{escape(each.event.id)}</small>" for each in entries.entries)
    return f"<h2>Whole texts</h2>{_list(texts)}"


def _list(lines: Iterable[str]) -> str:
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<ul>{items}</ul>" if items else "<p>Nothing was found.</p>"


def _line(given: Mapping[str, str], preview: Preview, *, here: bool = False) -> str:
    named = {name: given[name] for name in ("space", "agent", "q") if name in given}
    around = escape(f"viewer?{urlencode({**named, 'anchor_id': preview.id})}")
    whole = escape(f"viewer?{urlencode({**named, 'ids': preview.id})}")
    head = escape(f"{preview.agent} · {preview.kind} · turn {preview.turn} · {preview.at:%Y-%m-%d %H:%M}")
    note = f"[{preview.note}] " if isinstance(preview, SearchHit) and preview.note else ""
    text = escape(note + preview.preview)
    return (
        f"<span{' class=here' if here else ''}>{text}</span><br><small>{head} · {preview.tokens} tokens · "
        f'<a href="{around}">around</a> · <a href="{whole}">whole text</a></small>'
    )
