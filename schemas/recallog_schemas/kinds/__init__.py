"""The catalogue of kinds: for each known kind its payload, its text, its importance, its role, and who sees it.

Kinds are an open set. An unknown kind carries any JSON object, has importance 0.5, is private to its agent, and its
text is the first of `text`, `belief`, `summary`, `goal` that its payload has. A space declares otherwise for kinds of
its own with `space.configured`. A memory model of a program, or of an installed package, registers its kinds with
`register`.
"""

from recallog_schemas.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
