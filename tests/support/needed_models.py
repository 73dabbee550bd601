"""Which built-in memory models a test needs: it is left out in a copy of the repository that lacks one.

`pytest.mark.models("tiers")` marks a test, a case, or with `pytestmark` a whole file, which is then not even imported
where the model is missing. A model brings those that it is built on. `"all"` is for tests of the whole product.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from recallog_schemas.models import BUILT_IN

ALL = "all"

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


def _names(arguments: str) -> list[str]:
    return re.findall(r'"(\w+)"', arguments)
