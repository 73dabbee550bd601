"""The picture of a network: nodes that repel each other, links that hold them together, and labels that do not overlap.

It is computed on the server, so that the page needs no script, and from the names only, so that it is reproducible.
"""

import hashlib
import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 1_000.0, 640.0
MARGIN = 36.0
ROUNDS = 90
RADIUS_LEAST, RADIUS_MOST = 3.5, 17.0
STROKE_LEAST, STROKE_MOST = 0.7, 5.0
LABEL_CHARS = 24
LETTER = 6.4
"""The width of a letter of a label; one of Chinese or Japanese has twice as much."""
LINE = 14.0
COVERING = 30
"""Number of labels, of the strongest nodes, that may cover other nodes."""

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node and the place of its label."""

    name: str
    weight: int
    x: float
    y: float
    radius: float
    label: str
    label_x: float
    label_y: float
    anchor: str
    """Alignment of the label at its place: start, middle or end."""
    is_labelled: bool
    """Whether the label is always shown. Otherwise it would cover others, and is shown while the pointer is on the
    node."""


@dataclass(frozen=True, slots=True)
class DrawnLink:
    """A link between two nodes."""

    one: str
    other: str
    weight: int
    x1: float
    y1: float
    x2: float
    y2: float
    width: float


@dataclass(frozen=True, slots=True)
class Network:
    """A picture of a network, in units of its `width` and `height`."""

    nodes: Sequence[DrawnNode]
    links: Sequence[DrawnLink]
    width: float = WIDTH
    height: float = HEIGHT


def draw_network(nodes: Mapping[str, int], links: Mapping[tuple[str, str], int]) -> Network:
    """The picture of nodes and links with their weights. Links name nodes."""
    names = sorted(nodes)
    number = {name: index for index, name in enumerate(names)}
    weights = np.array([nodes[name] for name in names], dtype=float)
    radii = RADIUS_LEAST + (RADIUS_MOST - RADIUS_LEAST) * _share(np.sqrt(weights))
    pairs = np.array([(number[one], number[other]) for one, other in links], dtype=int).reshape(-1, 2)
    strengths = np.array(list(links.values()), dtype=float)
    points = _place_nodes(names, pairs, strengths, radii)
    widths = STROKE_LEAST + (STROKE_MOST - STROKE_LEAST) * _share(np.sqrt(strengths))
    strongest_first = sorted(range(len(names)), key=lambda index: (-weights[index], names[index]))
    labels = _Labels(points, radii)
    return Network(
        [labels.place(index, names[index], int(weights[index])) for index in strongest_first],
        [
            DrawnLink(one, other, weight, *map(_round_number, (*points[number[one]], *points[number[other]], width)))
            for ((one, other), weight), width in zip(links.items(), widths, strict=True)
        ],
    )


def _share(values: Points) -> Points:
    """Each value scaled to 0 … 1, between the least and the greatest value."""
    if not len(values):
        return values
    least, span = values.min(), np.ptp(values)
    return (values - least) / span if span else np.zeros_like(values)


def _place_nodes(names: Sequence[str], pairs: NDArray[np.int_], strengths: Points, radii: Points) -> Points:
    """A place for each node (Fruchterman and Reingold, 1991), inside the frame and without overlap."""
    count = len(names)
    points = np.array([_first_place(name) for name in names]).reshape(count, 2)
    if count > 1:
        ideal = 1.0 / math.sqrt(count)
        pull = 0.5 + _share(np.sqrt(strengths))
        for step in range(ROUNDS):
            moves = _moves(points, pairs, pull, ideal)
            lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1e-9)
            heat = 0.12 * (1 - step / ROUNDS) ** 1.5 + 0.002
            points += moves / lengths * np.minimum(lengths, heat)
    return _apart(_fit_frame(points), radii)


def _first_place(name: str) -> tuple[float, float]:
    digest = hashlib.blake2b(name.encode(errors="surrogatepass"), digest_size=8).digest()
    angle = int.from_bytes(digest[:4]) / 2**32 * math.tau
    distance = math.sqrt(int.from_bytes(digest[4:]) / 2**32) / 2
    return distance * math.cos(angle), distance * math.sin(angle)


def _moves(points: Points, pairs: NDArray[np.int_], pull: Points, ideal: float) -> Points:
    """The displacement of each node: repelled by all others, attracted by its links, and drawn to the middle."""
    push = ideal**2 / _squares(points)
    moves: Points = points * (push.sum(axis=1, keepdims=True) - 0.6) - push @ points
    if len(pairs):
        along = points[pairs[:, 0]] - points[pairs[:, 1]]
        drawn_by = along * (np.linalg.norm(along, axis=1) / ideal * pull)[:, None]
        for axis in (0, 1):
            for side, sign in ((0, -1), (1, 1)):
                moves[:, axis] += sign * np.bincount(pairs[:, side], drawn_by[:, axis], len(points))
    return moves


def _squares(points: Points) -> Points:
    """The squared distances between all points; slightly more than 0 from a point to itself."""
    own = np.einsum("ij,ij->i", points, points)
    found: Points = np.maximum(own[:, None] + own - 2 * (points @ points.T), 1e-6)
    return found


def _fit_frame(points: Points) -> Points:
    """The places in units of the picture. A few distant nodes do not compress all others."""
    if len(points) < 2:
        return np.full_like(points, (WIDTH / 2, HEIGHT / 2))
    centre = np.median(points, axis=0)
    reach = np.maximum(np.quantile(np.abs(points - centre), 0.97, axis=0), 1e-9)
    half = np.array([WIDTH / 2 - 2 * MARGIN, HEIGHT / 2 - MARGIN])
    places = (points - centre) / reach
    framed: Points = np.array([WIDTH / 2, HEIGHT / 2]) + np.clip(places, -1.08, 1.08) * half
    return framed


def _apart(points: Points, radii: Points) -> Points:
    """The places, with nodes that cover each other pushed apart."""
    least = radii[:, None] + radii[None, :] + 5.0
    for _ in range(24):
        lengths = np.sqrt(_squares(points))
        covered = np.maximum(least - lengths, 0.0) / lengths / 2
        np.fill_diagonal(covered, 0.0)
        if not covered.any():
            break
        points = points * (1 + covered.sum(axis=1, keepdims=True)) - covered @ points
        points = np.clip(points, (MARGIN, MARGIN), (WIDTH - MARGIN, HEIGHT - MARGIN))
    return points


class _Labels:
    """Places labels, strongest node first. A label that would cover a label or a node is shown only on demand."""

    def __init__(self, points: Points, radii: Points) -> None:
        self._points, self._radii = points, radii
        self._taken = np.empty((0, 4))
        """Left, top, right and bottom of each label that is shown."""

    def place(self, index: int, name: str, weight: int) -> DrawnNode:
        (x, y), radius = self._points[index], self._radii[index]
        label = name if len(name) <= LABEL_CHARS else f"{name[: LABEL_CHARS - 1]}…"
        width = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in label) * LETTER
        away, middle = radius + 4, y + LINE * 0.3
        places = [
            (x + away, middle, "start", x + away),
            (x - away, middle, "end", x - away - width),
            (x, y - away, "middle", x - width / 2),
            (x, y + away + LINE * 0.7, "middle", x - width / 2),
        ]
        if x > WIDTH / 2:
            places[0], places[1] = places[1], places[0]
        tries = [(each, covers) for covers in (False, True)[: 1 + (len(self._taken) < COVERING)] for each in places]
        free = next(
            (each for each, covers in tries if self._takes(index, each[3], each[1], width, covers=covers)), None
        )
        label_x, label_y, anchor, _ = free or places[0]
        return DrawnNode(
            name,
            weight,
            _round_number(x),
            _round_number(y),
            _round_number(radius),
            label,
            _round_number(label_x),
            _round_number(label_y),
            anchor,
            free is not None,
        )

    def _takes(self, index: int, left: float, base: float, width: float, *, covers: bool) -> bool:
        """Reserve a place for a label if it has room there, and return whether it has. Labels never overlap."""
        top, right, bottom = base - LINE * 0.8, left + width, base + LINE * 0.25
        if left < 4 or right > WIDTH - 4 or top < 4 or bottom > HEIGHT - 4:
            return False
        taken = self._taken
        if ((taken[:, 0] < right) & (taken[:, 2] > left) & (taken[:, 1] < bottom) & (taken[:, 3] > top)).any():
            return False
        nearest = np.clip(self._points, (left, top), (right, bottom))
        covered = np.linalg.norm(self._points - nearest, axis=1) < self._radii
        covered[index] = False
        if covered.any() and not covers:
            return False
        self._taken = np.vstack([taken, (left, top, right, bottom)])
        return True


def _round_number(value: float) -> float:
    """A coordinate, rounded to a tenth of a unit."""
    return round(float(value), 1)
