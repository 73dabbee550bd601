"""Checks names in the wheel: a function that acts has a verb, and a public class name is that of one class.

`PYTHONPATH=tools python -m recallog_tools.names` prints what breaks the rules. The exit code is 1 if anything does.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_ROOTS = ("schemas", "projections", "streams", "memory", "service")

_PARTICIPLE = re.compile(
    r"_?([a-z]*ed|told|found|shown|given|taken|seen|made|kept|written|said|held|known|sent|left|gone|come|done|got|built"
    r"|drawn|chosen|meant|lost|brought)"
)
_VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "speed", "succeed"})
"""Verbs that end like participles."""

ALLOWED_FUNCTIONS: Mapping[str, str] = {
    "memory/recallog/remote/client.py:Remote.seen": "documented: `seen` is the stream of what an agent may see",
}
"""Participles that stay, with the reasons."""
ALLOWED_CLASSES: Mapping[str, str] = {
    "Memory": "the synchronous API has the names of the asynchronous one: `recallog.sync.Memory`",
    "Remote": "the same: `recallog.sync.Remote`",
}
"""Names of several classes, with the reasons."""


def problems(sources: Mapping[str, str]) -> Iterator[str]:
    """What breaks the rules in modules, by their paths."""
    classes: dict[str, list[str]] = defaultdict(list)
    for path, source in sources.items():
        for name, node in _definitions(ast.parse(source), ""):
            if isinstance(node, ast.ClassDef):
                if not node.name.startswith("_"):
                    classes[node.name].append(f"{path}:{node.lineno}")
            elif is_participle(node) and f"{path}:{name}" not in ALLOWED_FUNCTIONS:
                yield f"{path}:{node.lineno}: {name} is a bare participle; give it a verb, such as find_hits for found"
    for name, places in classes.items():
        if len(places) > 1 and name not in ALLOWED_CLASSES:
            yield f"{', '.join(places)}: several classes are named {name}; say in each name which thing it is"


def is_participle(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the name of a function is a participle alone. A property may be one: it is a state."""
    if any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
        return False
    return _PARTICIPLE.fullmatch(node.name) is not None and node.name.strip("_") not in _VERBS


def _definitions(
    node: ast.AST, path: str
) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]]:
    """All classes and functions below a node, each with its qualified name."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{path}{each.name}", each
            yield from _definitions(each, f"{path}{each.name}.")
        else:
            yield from _definitions(each, path)


def of_wheel() -> Mapping[str, str]:
    """The sources of the wheel by path."""
    paths = [path for root in _ROOTS for path in sorted((REPOSITORY / root).glob("*/**/*.py"))]
    return {path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def main() -> int:
    found = list(problems(of_wheel()))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
