"""Packages whose public names are imported when they are first used (PEP 562).

A package declares its names once, as type checkers read them. The interpreter skips that block; the names are found in
the source of the package when they are first needed:

```python
if TYPE_CHECKING:
    from recallog.memory import Memory as Memory
    from recallog_schemas.views import *
else:
    __getattr__, __dir__ = lazy_exports(__name__)
```

A name may be a module of the package itself. A star means the `__all__` of a module, else its public classes and
functions, which are found without importing it.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_ALL = "__all__"
_STAR = "*"


def lazy_exports(package: str, packages: Iterable[str] = ("",)) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`. Its `__all__` is an attribute like the others.

    Names of modules outside of `packages` are left out.
    """

    @cache
    def named() -> dict[str, str]:
        """Public names by the module that each is imported from."""
        return {name: module for module, name in _imports(package, packages) if name != _STAR}

    @cache
    def starred() -> dict[str, str]:
        """As `named`, of names that a star stands for."""
        modules = [module for module, name in _imports(package, packages) if name == _STAR]
        return {name: module for module in modules for name in _public_names(module)}

    def public() -> list[str]:
        return sorted({*named(), *starred()})

    def get(name: str) -> Any:
        if name == _ALL:
            return public()
        module = named().get(name) or starred().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public()})

    return get, listed


def _imports(package: str, packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The modules that a package imports public names from, each with a name or a star."""
    prefixes = tuple(f"{each}." if each else "" for each in packages)
    for line in _source(package).splitlines():
        match line.split():
            case ["from", module, *_] if not module.startswith(prefixes):
                pass
            case ["from", module, "import", name, "as", alias] if alias == name:
                yield module, name
            case ["from", module, "import", "*", *_]:
                yield module, _STAR


def _public_names(module: str) -> Iterable[str]:
    source = _source(module)
    if "\n__all__ = " in source or "lazy_exports(__name__" in source:
        names: Iterable[str] = getattr(import_module(module), _ALL)
        return names
    lines = [line for line in source.split("\n") if line.startswith(("class ", "def "))]
    defined = [re.split(r"\W", line, maxsplit=2)[1] for line in lines]
    return [name for name in defined if not name.startswith("_")]


def _source(module: str) -> str:
    """The text of a module, also of one in a ZIP file. `get_source` takes three times as long: it detects encodings."""
    spec: Any = find_spec(module)
    if spec is None or not str(spec.origin).endswith(".py"):
        raise ImportError(f"the source of {module} is not installed, and public names are found in it", name=module)
    text: str = spec.loader.get_data(spec.origin).decode()
    return text
