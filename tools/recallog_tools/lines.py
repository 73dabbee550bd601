"""Counts the lines of code in the wheel: without blank lines, comments and docstrings.

`PYTHONPATH=tools python -m recallog_tools.lines` prints them by folder. The exit code is 1 if there are too many.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LINES_MAX = 61_400
"""What few people need is a distribution of its own under `adapters`."""

_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def of_wheel() -> Mapping[str, int]:
    """The lines of code by folder, two levels deep."""
    found: Counter[str] = Counter()
    for package in _packages():
        for path in [*package.rglob("*.py"), *package.rglob("*.pyi")]:
            folder = "/".join(path.relative_to(package.parent).parts[:2])
            found[folder] += of_source(path.read_text(encoding="utf-8"))
    return found


def of_source(source: str) -> int:
    """The lines of code in the text of a module."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines.difference(*_docstrings(source)))


def _docstrings(source: str) -> Iterator[range]:
    """The lines of each docstring, including docstrings below attributes."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _packages() -> list[Path]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    return [REPOSITORY / each for each in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]]


def main() -> int:
    found = of_wheel()
    for folder, lines in sorted(found.items(), key=lambda item: -item[1]):
        print(f"{lines:>7,}  {folder}")
    total = sum(found.values())
    print(f"{total:>7,}  of {LINES_MAX:,}")
    return 1 if total > LINES_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
