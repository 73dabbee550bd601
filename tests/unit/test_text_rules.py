"""The text rules of a space, which derive texts from payloads."""

from typing import Any

import pytest

from recallog_schemas import text_rules

ORDER = {
    "customer": "Ada",
    "item": {"name": "rye", "tags": ["dark", "ä"], "is-new": True},
    "count": 2,
    "price": 2.5,
    "note": None,
    "braces": "{count}",
}


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("customer", "Ada"),
        ("item.name", "rye"),
        ("{customer}", "Ada"),
        ("{customer} ordered {item.name}", "Ada ordered rye"),
        ("{count} x {item.name}, {price} each", "2 x rye, 2.5 each"),
        ("item.is-new", "true"),
        ("item.tags", '["dark","ä"]'),
        ("item", '{"name":"rye","tags":["dark","ä"],"is-new":true}'),
        ("<{note}{missing}{item.missing}{customer.name}{item.tags.0}>", "<>"),
        ("{{{customer}}} {{count}}", "{Ada} {count}"),
        ("{braces}", "{count}"),
        ("{customer}\n{customer}", "Ada\nAda"),
    ],
)
def test_placeholders_are_looked_up_in_the_payload(rule: str, text: str) -> None:
    assert text_rules.make_rule(rule)(ORDER) == text


@pytest.mark.parametrize(
    "rule",
    [
        "",
        " ",
        "a constant text",
        "{{customer}}",
        "{customer",
        "customer}",
        "{}",
        "{ customer }",
        "{customer!r}",
        "{count:>10}",
        "{item[name]}",
        "{item..name}",
        "{item.}",
        "{count + 1}",
        "{{customer}",
    ],
)
def test_anything_but_a_field_or_a_template_with_a_placeholder_is_refused(rule: str) -> None:
    with pytest.raises(ValueError, match=r"placeholder|names no payload field"):
        text_rules.make_rule(rule)


def test_placeholders_read_no_attributes() -> None:
    assert text_rules.make_rule("<{customer.__class__}{__class__.__name__}>")(ORDER) == "<>"


def test_a_text_is_cut_at_8000_characters() -> None:
    assert text_rules.make_rule("body")({"body": "語" * 9_000}) == "語" * 8_000
    assert text_rules.make_rule("{a}{b}!")({"a": "a" * 7_999, "b": "b" * 9}) == "a" * 7_999 + "b"


def test_text_beyond_the_cut_is_not_formatted() -> None:
    class Untouched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            assert key == "large"
            return super().get(key, default)

    assert len(text_rules.make_rule("{large} {other}")(Untouched(large=["x" * 9_000]))) == 8_000
