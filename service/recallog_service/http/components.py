"""Names the repeated parts of an OpenAPI document. Each name becomes a type in a generated client; without names, every
operation would have types of its own.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

Schema = dict[str, Any]

_SHORT_CHARS = 100
"""Shorter parts are not named: a reference would save little and be harder to read."""


class _Place(NamedTuple):
    """A place in the document that describes a field or a parameter."""

    holder: Any
    key: str | int
    owner: str
    name: str

    @property
    def part(self) -> Schema:
        found: Schema = self.holder[self.key]
        return found


def name_parts(document: Schema) -> Schema:
    """Name the enumerations, and the repeated fields and parameters. Changes the document."""
    components = document["components"]
    schemas, parameters = components["schemas"], components.setdefault("parameters", {})
    fields = [
        _Place(schema["properties"], name, owner, name)
        for owner, schema in schemas.items()
        for name in schema.get("properties", ())
    ]
    given = [
        _Place(operation["parameters"], index, operation["operationId"], parameter["name"])
        for methods in document["paths"].values()
        for operation in methods.values()
        for index, parameter in enumerate(operation.get("parameters", ()))
    ]
    _name_enumerations([*fields, *given], schemas)
    _share([(_type_name(place.name), place) for place in fields], "schemas", schemas)
    _share([(place.name, place) for place in given], "parameters", parameters)
    return document


def _name_enumerations(places: Iterable[_Place], schemas: dict[str, Schema]) -> None:
    """Name each enumeration after most of its fields. If the name is taken, it is prefixed with an owner's name."""
    alike = defaultdict(list)
    for place in places:
        for schema in _enumerations(place.part):
            alike[tuple(schema["enum"])].append((place.name, place.owner, schema))
    taken = Counter(name for found in alike.values() for name in {name for name, _, _ in found})
    for found in alike.values():
        names = Counter(name for name, _, _ in found)
        name = min(names, key=lambda each: (-names[each], each))
        owner = min(owner for each, owner, _ in found if each == name)
        title = _type_name(name)
        title = title if taken[name] == 1 and title not in schemas else _type_name(owner) + title
        schemas[title] = named = Schema()
        for _, _, schema in found:
            named |= {key: schema.pop(key) for key in ("type", "enum") if key in schema}
            schema["$ref"] = f"#/components/schemas/{title}"


def _enumerations(schema: object) -> Iterator[Schema]:
    match schema:
        case {"enum": _}:
            yield schema  # type: ignore[misc]
        case dict():
            for each in schema.values():
                yield from _enumerations(each)
        case list():
            for each in schema:
                yield from _enumerations(each)


def _share(places: Iterable[tuple[str, _Place]], section: str, components: dict[str, Schema]) -> None:
    """Make a component of each repeated part. If several parts have the same name, the most frequent one gets it."""
    alike = defaultdict(list)
    for name, place in places:
        alike[name, json.dumps(place.part, sort_keys=True)].append(place)
    for (name, text), found in sorted(alike.items(), key=lambda each: -len(each[1])):
        if len(found) > 1 and len(text) > _SHORT_CHARS and name not in components:
            components[name] = found[0].part
            for place in found:
                place.holder[place.key] = {"$ref": f"#/components/{section}/{name}"}


def _type_name(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in name.replace(".", "_").split("_"))
