"""Packages whose public names are imported when they are first used (PEP 562), and the modules that document names.

The stub beside a package, which `make generate` writes, lists its names for type checkers. It is read when the first
name is needed:

```python
__getattr__, __dir__ = lazy_exports(__name__)
```

A name may be a module of the package itself.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

_ALL = "__all__"
_IMPORT = re.compile(r"^from (\S+) import (.+)$", re.MULTILINE)
_OF_MODEL = re.compile(r"recallog\w*\.models\.(\w+)\b")

_DEFINED_IN: dict[object, str] = {}
"""By class or function that another module documents: the module that defines it."""


def lazy_exports(package: str, *, is_documented: bool = False) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of `package`. Its `__all__` is an attribute like the others.

    Names of memory models that are not built in are left out. With `is_documented` the package is where users find its
    names, see `document`.
    """

    @cache
    def modules() -> dict[str, str]:
        """The module that each name is imported from."""
        return dict(_imports(package))

    def get(name: str) -> Any:
        if name == _ALL:
            return sorted(modules())
        module = modules().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(module), name)
        if is_documented:
            document(value, package)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules()})

    return get, list_names


def document(value: object, module: str) -> None:
    """Let tracebacks, `repr` and pickles name the module that users import a class or a function from.

    A class or function that a module documents already is not changed.
    """
    if isinstance(value, type | FunctionType) and value not in _DEFINED_IN:
        _DEFINED_IN[value] = value.__module__
        value.__module__ = module


def defining_module(value: Any) -> str:
    """The module with the source of a class or a function."""
    return _DEFINED_IN.get(value) or str(value.__module__)


def _imports(package: str) -> Iterator[tuple[str, str]]:
    """The names in the stub of a package, each with the module that it is imported from."""
    from recallog_schemas.models import BUILT_IN

    spec: Any = find_spec(package)
    text: str = spec.loader.get_data(f"{spec.origin.rpartition('.')[0]}.pyi").decode()
    for module, names in _IMPORT.findall(text):
        model = _OF_MODEL.match(module)
        if model is None or model[1] in BUILT_IN:
            for name in names.split(", "):
                yield name.partition(" ")[0], module
