"""Which built-in memory models a test needs: it is left out in a copy of the repository that lacks one.

`pytest.mark.models("tiers")` marks a test, a case, or with `pytestmark` a whole file, which is then not even imported
where the model is missing. A model brings those that it is built on. `"all"` is for tests of the whole product.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import recallog
from recallog_schemas.models import BUILT_IN

ALL = "all"
JUST_THESE = "--just-these-models"
"""Of pytest: run only tests that need all models of this copy."""

_TESTS = Path(__file__).parents[1]
_MARK = r"mark\.models\(([^)]*)\)"
_OF_FILE = re.compile(rf"^pytestmark = [^=]*?{_MARK}", re.MULTILINE)
_ANY = re.compile(_MARK)


def needed_by_file(path: Path) -> frozenset[str]:
    """The models that all tests of a file need. The file is read, and not imported."""
    return frozenset(name for names in _OF_FILE.findall(path.read_text(encoding="utf-8")) for name in _names(names))


@cache
def named() -> frozenset[str]:
    """The models that any test names."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(_TESTS.rglob("test_*.py")))
    found = {name for text in texts for names in _ANY.findall(text) for name in _names(names)}
    return frozenset(found - {ALL})


def missing(needed: Iterable[str]) -> set[str]:
    """Those of the needed models that this copy does not have."""
    names = set(needed)
    if ALL in names:
        names = (names - {ALL}) | named()
    return names - set(BUILT_IN)


def brought(needed: Iterable[str]) -> frozenset[str]:
    """The needed models, and those that they are built on."""
    names = set(needed)
    if ALL in names:
        names = set(BUILT_IN)
    for model in reversed(recallog.MODELS):  # each is listed after those that it is built on
        if model.name in names:
            names.update(model.after)
    return frozenset(names)


def combinations() -> dict[frozenset[str], list[Path]]:
    """What tests need, with what that is built on, and the files where tests need just that.

    A test has at most one mark beside that of its file.
    """
    found: dict[frozenset[str], list[Path]] = {}
    for path in sorted(_TESTS.rglob("test_*.py")):
        of_file = needed_by_file(path)
        marks = _ANY.findall(path.read_text(encoding="utf-8"))
        for needed in {brought(of_file.union(names)) for names in [(), *map(_names, marks)]}:
            found.setdefault(needed, []).append(path)
    return found


def _names(arguments: str) -> list[str]:
    return re.findall(r'"(\w+)"', arguments)
