"""Views in a notebook: as HTML in which stored texts are text, and as a data frame of pandas.

All views are shown by their fields alone, so that no view needs code for it.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel

from recallog_schemas.errors import SettingsError
from recallog_schemas.event import Position
from recallog_schemas.shortening import cut
from recallog_schemas.visible import visible

if TYPE_CHECKING:
    import pandas

ROWS_SHOWN = 100
"""How many items of a list a cell shows. `to_frame` has all of them."""
CELL_CHARS = 300
_HIDDEN = {"generation", "checkpoint", "dates", "envelope", "schema_version", "payload"}


def html_of(view: BaseModel) -> str:
    """The fields of a view as a table, and below them the items of its list as another one."""
    name = _list_of(view)
    named = {path: value for path, value in _flat(view).items() if path != name and _is_shown(path, value)}
    parts = [f"<b>{escape(type(view).__name__)}</b>", _table(["", ""], named.items())]
    if name is not None:
        items = getattr(view, name)
        rows = [_flat(item) for item in items[:ROWS_SHOWN]]
        columns = dict.fromkeys(path for row in rows for path, value in row.items() if _is_shown(path, value))
        parts.append(_table(columns, ([row.get(path) for path in columns] for row in rows)))
        if len(items) > ROWS_SHOWN:
            parts.append(f"<p>{len(items) - ROWS_SHOWN:,} more: to_frame() has all</p>")
    return "".join(parts)


def frame_of(view: BaseModel) -> "pandas.DataFrame":
    """The items of the list of a view, one in each row.

    Raises `TypeError` for a view that has not exactly one list of views, and `SettingsError` without pandas.
    """
    name = _list_of(view)
    if name is None:
        raise TypeError(f"{type(view).__name__} has not exactly one list of views to make a table of")
    try:
        import pandas
    except ModuleNotFoundError:
        raise SettingsError("pandas is not installed. Install it: pip install pandas") from None
    return pandas.DataFrame([_flat(item) for item in getattr(view, name)])


def _list_of(view: BaseModel) -> str | None:
    """The name of the field with the list that a view is about."""
    lists = [name for name, field in type(view).model_fields.items() if _is_of_views(field.annotation)]
    stated = getattr(view, "list_field", "items")  # of a `Bounded`; of a `ListView` it is `items`
    return stated if stated in type(view).model_fields else lists[0] if len(lists) == 1 else None


def _is_of_views(annotation: object) -> bool:
    item = next(iter(get_args(annotation)), None)
    return get_origin(annotation) is tuple and isinstance(item, type) and issubclass(item, BaseModel)


def _flat(value: object, path: str = "") -> dict[str, Any]:
    """The fields of a view by their names, and those of a view within it by paths such as `event.kind`."""
    if isinstance(value, BaseModel):
        fields = [(name, getattr(value, name)) for name in type(value).model_fields]
        return {
            at: each for name, field in fields for at, each in _flat(field, f"{path}.{name}" if path else name).items()
        }
    return {path or "item": str(value) if isinstance(value, Position) else value}


def _is_shown(path: str, value: object) -> bool:
    """Whether a field tells a reader something. The text of an event is shown, so its payload is not."""
    name = path.rpartition(".")[2]
    return name not in _HIDDEN and value not in (None, "", (), [], {}) and (name != "left_out" or bool(value))


def _table(head: Iterable[str], rows: Iterable[Sequence[object]]) -> str:
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ("".join(f"<td>{escape(_show_value(value))}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>" if body else ""


def _show_value(value: object) -> str:
    """A value in a cell. What would hide or reorder characters is written out."""
    match value:
        case None:
            text = ""
        case float():
            text = f"{value:g}"
        case tuple() | list() if value and isinstance(value[0], BaseModel):
            text = "\n".join(each.format() for each in value[:ROWS_SHOWN])
        case tuple() | list():
            text = ", ".join(str(each) for each in value[:ROWS_SHOWN])
        case _:
            text = str(value)
    return visible(cut(text, CELL_CHARS))
