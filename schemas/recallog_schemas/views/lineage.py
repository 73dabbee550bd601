"""Lineage: what an event or entry rests on, and what rests on it, over all steps."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, Self

from pydantic import Field

from recallog_schemas.views.base import OfEvent, View, one_line
from recallog_schemas.views.previews import Preview

Relation = Literal["cause", "source"]

_LINE_CHARS = 90
"""The maximum length of a text in a line of the tree."""


class LineageLink(View):
    """An event or entry that another one was made from, or that was made from it."""

    id: str
    """Its id. A cause may be a trigger, which is not an event."""
    relation: Relation
    """"cause": the later one names the earlier one as its `causation_id`. "source": as one of its sources, such as
    `based_on` of a belief."""
    memory: Preview | None
    """None: it is not an event or entry that the agent may see."""

    def format(self) -> str:
        """The relation, the id and the beginning of the text in one line."""
        shown = "" if self.memory is None else f" {self.memory.line()}"
        return one_line(f"{self.relation} {self.id}{shown}")


class LineageNode(View):
    """An event or entry of a lineage, which the agent may see."""

    steps: int
    """How many steps it is away: 0 for what was asked for, negative for what that rests on, positive for what rests on
    it."""
    memory: Preview
    """The event or entry."""

    def format(self) -> str:
        """The kind, the agent, the beginning of the text and the id in one line."""
        text = one_line(self.memory.preview)
        shown = text if len(text) <= _LINE_CHARS else f"{text[: _LINE_CHARS - 1]}…"
        return f"[{self.memory.kind}][{one_line(self.memory.agent)}] {shown}  {one_line(self.memory.id)}"


class LineageEdge(View):
    """One step between two nodes of a lineage."""

    source: str
    """The id of the node that the other one rests on."""
    product: str
    """The id of the node that rests on it."""
    relation: Relation
    """As in `LineageLink`."""
    step: str
    """What made the product: "cause" (an event caused another one), "reflection", "extraction", "consolidation" (a
    summary of archived entries), "compaction" (the summary of a conversation), "migration", or the name of a trigger of
    your own; "source" if the product names the source and no more is known."""


class LineageBranch(NamedTuple):
    """One line of a lineage as a tree."""

    node: LineageNode
    edge: LineageEdge | None
    """The step from the line above; None for what was asked for."""
    lasts: tuple[bool, ...]
    """For each level from the first one, whether no further line of that level follows below the same line."""
    is_repeated: bool
    """Whether a line above has the same node, with what is below it."""

    @property
    def level(self) -> int:
        """0 for what was asked for."""
        return len(self.lasts)

    def format(self) -> str:
        """The line with the branches of the tree before it."""
        *above, last = self.lasts or (True,)
        lead = "".join("   " if each else "│  " for each in above) + ("└─ " if last else "├─ ") if self.lasts else ""
        step = "" if self.edge is None else f"{self.edge.step} "
        return f"{lead}{step}{self.node.format()}{' (see above)' if self.is_repeated else ''}"


class Lineage(OfEvent):
    """What an event or entry rests on, and what rests on it: the direct links, and a graph of all steps."""

    memory: Preview | None
    """The event or entry itself. None: there is none, or the agent may not see it."""
    sources: tuple[LineageLink, ...]
    """What it was made from: its cause, then its sources in its own order."""
    products: tuple[LineageLink, ...]
    """What was made from it and the agent may see: of the events that the views retain, oldest first, then entries."""
    left_out: int = Field(default=0, repr=False, exclude_if=lambda count: count == 0)
    """How many more there are than the first 100 sources and the last 100 products. Left out if there are none."""
    nodes: tuple[LineageNode, ...]
    """What the graph has, nearest first: at most 200 events and entries. The answer of a trigger has its parts for the
    trigger."""
    edges: tuple[LineageEdge, ...]
    """The steps between them."""
    nodes_left_out: int = Field(default=0, repr=False, exclude_if=lambda count: count == 0)
    """How many more nodes the last step has found than the graph has room for. The graph does not show what these rest
    on, nor what rests on them. Left out if it has room for all."""

    @property
    def ok(self) -> bool:
        return bool(self.nodes)

    @property
    def shows_event(self) -> bool:
        return bool(self.nodes)

    def conceal(self) -> Self:
        """The lineage of an unknown event: the answer reveals nothing else about an event that the agent may not
        see."""
        return self

    def branches(self, *, back: bool) -> Iterator[LineageBranch]:
        """The graph as a tree: with `back` what was asked for and what that rests on, else what rests on it.

        A node that can be reached in several ways has its branches once.
        """
        nodes = {each.memory.id: each for each in self.nodes}
        below: dict[str, list[LineageEdge]] = defaultdict(list)
        for edge in self.edges:
            below[edge.product if back else edge.source].append(edge)
        seen: set[str] = set()
        waiting = [LineageBranch(each, None, (), False) for each in self.nodes if each.steps == 0][::-1]
        while waiting:
            branch = waiting.pop()
            id_ = branch.node.memory.id
            yield branch._replace(is_repeated=id_ in seen and id_ in below)
            if id_ in seen:
                continue
            seen.add(id_)
            edges = below.get(id_, ())
            waiting += [
                LineageBranch(nodes[edge.source if back else edge.product], edge, (*branch.lasts, number == 0), False)
                for number, edge in enumerate(reversed(edges))
            ]

    def format(self) -> str:
        """What was asked for, then two trees: what it rests on, and what rests on it."""
        if not self.nodes:
            return "(nothing)"
        unseen = [one_line(f"{each.format()} (not an event that {self.agent} may see)") for each in self.unseen]
        parts: Mapping[str, list[str]] = {
            "rests on": [*self._tree(back=True), *unseen],
            "on it rest": self._tree(back=False),
        }
        lines = [each.format() for each in self.nodes if each.steps == 0]
        lines += [line for title, tree in parts.items() if tree for line in (f"{title}:", *tree)]
        more = self.nodes_left_out
        return "\n".join([*lines, f"({more:,} more are not shown)"] if more else lines)

    @property
    def unseen(self) -> tuple[LineageLink, ...]:
        """The cause and the sources of the event itself, if they are not events or entries that the agent may see."""
        return tuple(each for each in self.sources if each.memory is None)

    def _tree(self, *, back: bool) -> list[str]:
        """The lines of a tree, without a root that has no branches."""
        branches = list(self.branches(back=back))
        following = [*branches[1:], None]
        roots = sum(each.level == 0 for each in branches)
        return [
            each.format()
            for each, after in zip(branches, following, strict=True)
            if each.level or (roots > 1 and after is not None and after.level)
        ]
