"""The picture of a lineage: an SVG file. Its columns go from sources on the left to derived items on the right."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from recallog_schemas.visible import visible

if TYPE_CHECKING:
    from recallog_schemas.views import Lineage, LineageEdge, LineageNode

BOX_WIDTH, BOX_HEIGHT = 250, 46
COLUMN, ROW, MARGIN = 370, 64, 20
"""The distances between boxes, and from the border."""
TEXT_CHARS = 36

_STYLE = """\
:root { color-scheme: light dark; --bg: #fbfbfa; --box: #fff; --line: #8a8d92; --text: #1d1e20; --quiet: #63666b;
  --asked: #0a6b66; }
@media (prefers-color-scheme: dark) { :root { --bg: #131416; --box: #1f2125; --line: #6d7178; --text: #e4e5e7;
  --quiet: #989ca4; --asked: #5cc8c0; } }
svg { background: var(--bg); font: 12px system-ui, sans-serif; } text { fill: var(--text); }
rect { fill: var(--box); stroke: var(--line); } .asked rect { stroke: var(--asked); stroke-width: 2; }
.edge path { fill: none; stroke: var(--line); } .edge text { text-anchor: middle; }
.edge text, .head { fill: var(--quiet); font-size: 11px; } #arrow path { fill: var(--line); }"""

_MARKER = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>'
)


def draw_lineage(lineage: "Lineage") -> str:
    """The graph of a lineage as a self-contained SVG document. The same lineage always gives the same document."""
    columns = _columns(lineage)
    places = {
        id_: (MARGIN + number * COLUMN, MARGIN + row * ROW)
        for number, column in enumerate(columns)
        for row, id_ in enumerate(column)
    }
    width = 2 * MARGIN + max(0, len(columns) - 1) * COLUMN + BOX_WIDTH
    height = 2 * MARGIN + max(map(len, columns), default=0) * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>Lineage of {_text(lineage.event_id)}</title>",
        f"<style>{_STYLE}</style>",
        _MARKER,
        *(_draw_edge(each, places) for each in lineage.edges if each.source != each.product),
        *(_draw_node(each, *places[each.memory.id]) for each in lineage.nodes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _columns(lineage: "Lineage") -> Sequence[Sequence[str]]:
    """The ids by column: each is to the right of its sources. A cycle is broken at the node that was found first."""
    sources: dict[str, set[str]] = {each.memory.id: set() for each in lineage.nodes}
    for edge in lineage.edges:
        if edge.source != edge.product:
            sources[edge.product].add(edge.source)
    order = sorted(lineage.nodes, key=lambda each: each.steps)
    waiting = [each.memory.id for each in order]
    column_of: dict[str, int] = {}
    while waiting:
        id_ = next((each for each in waiting if sources[each] <= column_of.keys()), waiting[0])
        waiting.remove(id_)
        column_of[id_] = 1 + max((column_of[each] for each in sources[id_] if each in column_of), default=-1)
    columns: dict[int, list[str]] = defaultdict(list)
    for id_, column in column_of.items():
        columns[column].append(id_)
    return [_sort_column(columns[number], sources, columns) for number in sorted(columns)]


def _sort_column(
    ids: Sequence[str], sources: Mapping[str, set[str]], columns: Mapping[int, Sequence[str]]
) -> Sequence[str]:
    """The ids of a column, ordered by the positions of their sources."""
    rows = {id_: row for column in columns.values() for row, id_ in enumerate(column)}
    return sorted(ids, key=lambda id_: sum(rows[each] for each in sources[id_]) / max(1, len(sources[id_])))


def _draw_node(node: "LineageNode", x: int, y: int) -> str:
    memory = node.memory
    head, text = f"{memory.kind}  {memory.agent}", memory.preview
    return (
        f'<g class="{"asked" if node.steps == 0 else "node"}"><title>{_text(memory.id)}: {_text(text)}</title>'
        f'<rect x="{x}" y="{y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"/>'
        f'<text class="head" x="{x + 10}" y="{y + 18}">{_cut(head)}</text>'
        f'<text x="{x + 10}" y="{y + 35}">{_cut(text)}</text></g>'
    )


def _draw_edge(edge: "LineageEdge", places: Mapping[str, tuple[int, int]]) -> str:
    (x1, y1), (x2, y2) = places[edge.source], places[edge.product]
    x1, y1, y2 = x1 + BOX_WIDTH, y1 + BOX_HEIGHT // 2, y2 + BOX_HEIGHT // 2
    bend = max(40, abs(x2 - x1) // 2)
    return (
        f'<g class="edge"><path d="M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}" marker-end="url(#arrow)"/>'
        f'<text x="{(x1 + x2) // 2}" y="{(y1 + y2) // 2 - 4}">{_text(edge.step)}</text></g>'
    )


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return _text(line if len(line) <= TEXT_CHARS else f"{line[: TEXT_CHARS - 1]}…")


def _text(text: str) -> str:
    return escape(visible(text))
