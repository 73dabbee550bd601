"""Packages whose public names are imported when they are first used (PEP 562).

A package declares its names twice, once for type checkers and once for the interpreter:

```python
if TYPE_CHECKING:
    from recallog.memory import Memory as Memory
else:
    __getattr__, __dir__, __all__ = lazy_exports(__name__, {"recallog.memory": ["Memory"]})
```
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of `package`.

    `exports` has the public names by the module that defines them.
    """
    module_of = {name: module for module, names in exports.items() for name in names}
    public = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return get, listed, public


def lazy_submodules(package: str) -> Callable[[str], Any]:
    """`__getattr__` of `package`: its modules are imported when they are first used as its attributes."""

    def get(name: str) -> Any:
        if name.startswith("_") or find_spec(f"{package}.{name}") is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get
