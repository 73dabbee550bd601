"""The page of settings: each with its environment variable."""

from recallog import Settings
from recallog_schemas.docstrings import attribute_docstrings
from recallog_tools.reference.markdown import bounds, code, docstring, sections, table
from recallog_tools.reference.signatures import type_text, value_text

_PREFIX = str(Settings.model_config["env_prefix"])


def page() -> str:
    """The page."""
    properties = Settings.model_json_schema()["properties"]
    descriptions = attribute_docstrings(Settings)
    rows = [
        (
            code(name),
            code(f"{_PREFIX}{name.upper()}"),
            code(type_text(field.annotation)),
            _default(field.default),
            bounds(properties[name]),
            descriptions.get(name, ""),
        )
        for name, field in Settings.model_fields.items()
    ]
    return sections(
        (
            "# Settings",
            docstring(Settings),
            'In Python, `Memory.open(Settings(home=..., index="off"))` takes them as arguments.',
            table(("setting", "environment variable", "type", "default", "bounds", "description"), rows),
        )
    )


def _default(value: object) -> str:
    return code(value_text(value if value is None or isinstance(value, bool | int | float) else str(value)))
