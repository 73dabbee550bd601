"""The API reference in docs/reference is that of the code, and complete. test_documentation.py checks its links."""

import re
from pathlib import Path

import pytest

from recallog import Memory
from recallog.operations import parameters
from recallog.operations.facade import all_operations, operation
from recallog.operations.operation import Scope
from recallog_schemas import errors, views
from recallog_schemas.kinds import CATALOGUE
from recallog_tools import generate, reference
from recallog_tools.reference.markdown import bounds
from recallog_tools.reference.views import described

ROOT = Path(__file__).parents[2]
COMMITTED = {path.name: path.read_text() for path in sorted((ROOT / "docs" / "reference").iterdir())}


def without_code(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)


def section(page: str, title: str) -> str:
    """One section of a page, without its heading."""
    (found,) = re.findall(rf"^#+ {re.escape(title)}\n(.*?)(?=^##|\Z)", page, re.DOTALL | re.MULTILINE)
    return str(found).strip()


@pytest.mark.models("all")
def test_the_committed_pages_are_those_of_the_code() -> None:
    # If this fails: make generate
    assert reference.pages(Memory) == COMMITTED


@pytest.mark.models("all")
def test_generating_writes_what_is_committed_and_removes_earlier_pages(tmp_path: Path) -> None:
    earlier = tmp_path / "docs" / "reference" / "gone.md"
    earlier.parent.mkdir(parents=True)
    earlier.touch()
    generate.write(tmp_path)
    found = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.parts[0] for path in found} == {"docs", "memory", "schemas", "service"}
    assert {path.name for path in found if path.parts[0] == "docs"} == COMMITTED.keys()
    for path in found:
        assert (tmp_path / path).read_text() == (ROOT / path).read_text(), f"{path} is not up to date: make generate"


@pytest.mark.parametrize("name", sorted(COMMITTED.keys() - {"README.md"}))
def test_everything_in_a_table_is_described(name: str) -> None:
    rows = [line for line in COMMITTED[name].splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.endswith("|  |")] == []


@pytest.mark.parametrize("name", sorted(COMMITTED.keys() - {"README.md", "errors.md", "settings.md"}))
def test_every_section_has_a_description(name: str) -> None:
    for title in headings(COMMITTED[name])[1:]:
        if title not in ("Operations", "Other methods and attributes"):
            text = without_code(section(COMMITTED[name], title)).strip()
            assert re.match(r"(?!Answer:|Answer of|Part of)[A-Z]", text), title


def test_every_operation_is_in_the_table_and_has_a_section_with_its_parameters_and_example() -> None:
    for name, each in all_operations(Memory).items():
        file = f"{each.group or 'memory'}.md"
        assert f"| [`memory.{name}`]({file}#{each.name}) | {each.summary} |" in COMMITTED["README.md"]
        found = section(COMMITTED[file], each.name)
        assert f"```shell\n{each.example}\n```" in found
        assert re.findall(r"^\| `(\w+)`", found, re.MULTILINE) == list(each.signature.parameters)


def test_every_kind_is_in_the_table_and_has_a_section_with_the_fields_of_its_payload() -> None:
    for name, kind in CATALOGUE.items():
        assert kind.description
        roles = {"bookkeeping": "none: bookkeeping", "entry": "private: entry"}
        readers = roles.get(kind.role, "shared" if kind.shared else "private")
        importance = f"{kind.importance:.2f}" if kind.is_episode or kind.recalled else ""
        assert f"| [`{name}`](#{name.replace('.', '')}) | {importance} | {readers} |" in COMMITTED["kinds.md"]
        fields = re.findall(r"^\| `(\w+)`", section(COMMITTED["kinds.md"], name), re.MULTILINE)
        assert fields == list(kind.payload.model_fields)


def test_every_view_says_what_its_text_is() -> None:
    for each in described(Memory):
        if issubclass(each, views.View):
            own = next(base for base in each.__mro__ if "format" in vars(base))
            assert vars(own)["format"].__doc__, f"{own.__name__}.format has no docstring"


def test_every_error_is_in_the_tree_and_in_the_table() -> None:
    for name, error in vars(errors).items():
        if isinstance(error, type) and issubclass(error, errors.RecallogError):
            assert COMMITTED["errors.md"].count(f"── {name}\n") == (error is not errors.RecallogError)
            assert f"| `{name}` | {error.exit_code} |" in COMMITTED["errors.md"]


class Oven(views.View):
    """The state of an oven."""

    degrees: int | None
    """Its temperature in °C."""

    def format(self) -> str:
        """The temperature."""
        return f"{self.degrees} °C"


class Bakery(Memory):
    @operation(example="recallog oven village --window 3", scope=Scope.OPERATE, destructive=True)
    async def oven(self, space: parameters.Space, *, window: parameters.Window = 3) -> Oven:
        """Heat the oven.

        Then `publish` that `oven` is hot in `space`. Raises `OutOfRange` if it is too hot.
        """
        return Oven(degrees=window)


def test_a_further_operation_is_in_the_reference_with_its_answer() -> None:
    pages = reference.pages(Bakery)
    assert "| [`memory.oven`](memory.md#oven) | Heat the oven. | `operate` | `recallog oven` |" in pages["README.md"]
    assert section(pages["memory.md"], "oven") == (
        "```python\nasync def oven(space: str, *, window: int | None = 3) -> Oven\n```\n\n"
        "Heat the oven.\n\n"
        "Then [`publish`](memory.md#publish) that `oven` is hot in `space`. Raises `OutOfRange` if it is too hot.\n\n"
        "| parameter | type | default | bounds | description |\n"
        "| --- | --- | --- | --- | --- |\n"
        "| `space` | `str` | required | a [name](README.md#names) | Name of the space. |\n"
        "| `window` | `int \\| None` | `3` | 1 to 10,000 | "
        "Number of events; default: the agent's setting, else 8. |\n\n"
        "Answer: [`Oven`](views.md#oven). Scope: [operate](README.md#scopes). Destructive. "
        "[JSON Schema](../../schemas/json/operations/oven.json).\n\n"
        "```shell\nrecallog oven village --window 3\n```"
    )
    assert section(pages["views.md"], "Oven") == (
        "The state of an oven.\n\nAnswer of [`memory.oven`](memory.md#oven).\n\n"
        "| field | type | description |\n"
        "| --- | --- | --- |\n"
        "| `degrees` | `int \\| None` | Its temperature in °C. |\n\n"
        "- `format()`: The temperature."
    )


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 1000}, "1 to 1,000"),
        ({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}, "at least 0"),
        ({"type": "number", "exclusiveMinimum": 0}, "more than 0"),
        ({"type": "string", "minLength": 1, "maxLength": 500}, "1 to 500 characters"),
        ({"type": "array", "maxItems": 100}, "at most 100 items"),
        ({"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}, ""),
        ({"type": "boolean"}, ""),
    ],
)
def test_bounds_are_shown_in_words(schema: dict[str, object], text: str) -> None:
    assert bounds(schema) == text
