"""Types and signatures as text, in the words of a Python programmer: without the names of modules, and the same in
every version of Python."""

import inspect
import json
import types
import typing
from collections.abc import Iterator
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, get_args, get_origin

LINE_CHARS = 100
"""A longer signature has one parameter per line."""


def type_text(annotation: Any) -> str:
    """A type as text: `int | None`, `tuple[Remembered, ...]`."""
    if isinstance(annotation, str):
        return annotation
    if annotation is None or annotation is types.NoneType:
        return "None"
    if annotation is ...:
        return "..."
    if isinstance(annotation, list):
        return f"[{', '.join(map(type_text, annotation))}]"
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_text(args[0])
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(type_text, args))
    if origin is Literal:
        return f"Literal[{', '.join(map(value_text, args))}]"
    if origin is not None:
        return f"{_name(origin)}[{', '.join(map(type_text, args))}]"
    return _name(annotation)


def _name(annotation: Any) -> str:
    if isinstance(annotation, type | TypeVar):
        return annotation.__name__
    return str(annotation).rpartition(".")[2]


def value_text(value: object) -> str:
    """A default as it is written in Python."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def signature_text(name: str, signature: inspect.Signature) -> str:
    """A signature without `self`; with one parameter per line if it is long."""
    parameters = list(parameter_texts(signature))
    answer = type_text(signature.return_annotation)
    returns = "" if signature.return_annotation is signature.empty else f" -> {answer}"
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= LINE_CHARS:
        return line
    return "\n".join((f"{name}(", *(f"    {each}," for each in parameters), f"){returns}"))


def parameter_texts(signature: inspect.Signature) -> Iterator[str]:
    """The parameters without `self`, with `*` before those that are given by name."""
    keyword_only = False
    for name, each in signature.parameters.items():
        if name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            yield "*"
        keyword_only = each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = "*" if each.kind is each.VAR_POSITIONAL else "**" if each.kind is each.VAR_KEYWORD else ""
        annotated = "" if each.annotation is each.empty else f": {type_text(each.annotation)}"
        equals = " = " if annotated else "="
        yield f"{stars}{name}{annotated}" + ("" if each.default is each.empty else equals + value_text(each.default))
