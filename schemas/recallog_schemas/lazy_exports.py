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
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, Sequence[str]], submodules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of `package`.

    `exports` has the public names by the module that defines them. `submodules` are modules of the package that are
    imported when they are first used as its attributes.
    """
    module_of = {name: module for module, names in exports.items() for name in names}
    public = sorted([*module_of, *submodules])

    def get(name: str) -> Any:
        if name in module_of:
            value = getattr(import_module(module_of[name]), name)
        elif name in submodules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public})

    return get, listed, public
