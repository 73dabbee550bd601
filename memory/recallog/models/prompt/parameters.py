"""The parameters of the operations of this model; see `recallog.operations.parameters`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, cast

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recallog.operations.operation import IN_BODY
from recallog.operations.parameters import identifier_of
from recallog_schemas.models.prompt import limits as prompt_limits
from recallog_schemas.names import IN_NFC
from recallog_schemas.validation import is_text


def _components(value: object) -> Sequence[Mapping[str, str]]:
    if not isinstance(value, list | tuple) or len(value) > prompt_limits.PROMPT_COMPONENTS_MAX:
        raise PydanticCustomError(
            "components", f"should be a list of at most {prompt_limits.PROMPT_COMPONENTS_MAX} sections"
        )
    return [_component(each) for each in value]


def _component(value: object) -> Mapping[str, str]:
    if isinstance(value, str):
        heading, colon, text = value.partition(":")
        value = {"heading": heading, "text": text.strip()} if colon else None
    if (
        not isinstance(value, Mapping)
        or value.keys() != {"heading", "text"}
        or not all(isinstance(each, str) and is_text(each) for each in value.values())
    ):
        raise PydanticCustomError("component", 'should be {"heading": …, "text": …}, or a text "heading: text"')
    heading = value["heading"].strip()
    if not heading or len(heading) > prompt_limits.PROMPT_HEADING_CHARS_MAX or len(heading.splitlines()) > 1:
        raise PydanticCustomError(
            "heading", f"the heading should be one line of 1 to {prompt_limits.PROMPT_HEADING_CHARS_MAX} characters"
        )
    return {"heading": heading, "text": value["text"]}


BudgetTokens = Annotated[
    int | None,
    Field(ge=1, description="Maximum number of tokens of the prompt: long lines are cut, others left out."),
]
RecallSession = Annotated[
    str | None,
    identifier_of("Session whose newest messages are the query of automatic recall; default: the newest session."),
    IN_NFC,
]
BesideMessages = Annotated[
    bool,
    Field(description="Leave out the messages of `session`, which is needed: the model gets them beside the prompt."),
]
SceneText = Annotated[str | None, Field(description="Text of the scene; default: the space's scene."), IN_BODY]
MemoryQuery = Annotated[str | None, Field(description="Text to select memories by; default: the scene.")]
Components = Annotated[
    Sequence[Mapping[str, str] | str],
    PlainValidator(_components),
    Field(description='Sections of your own, never left out: heading and text, or as one text "heading: text".'),
    WithJsonSchema(
        {
            "type": "array",
            "maxItems": prompt_limits.PROMPT_COMPONENTS_MAX,
            "items": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            "heading": {
                                "type": "string",
                                "minLength": 1,
                                "maxLength": prompt_limits.PROMPT_HEADING_CHARS_MAX,
                            },
                            "text": {"type": "string"},
                        },
                        "required": ["heading", "text"],
                        "additionalProperties": False,
                    },
                    {"type": "string", "examples": ["PRICES: Flour is 3 crowns."]},
                ]
            },
        }
    ),
]
Extra = Annotated[str | None, Field(description="Further text for the prompt.")]
Step = Annotated[str | None, Field(description="What the agent does now; never left out.")]
OutputFormat = Annotated[
    str | None, Field(description="Text that describes the form of the answer; the last part of the prompt.")
]


def add_headings(given: Sequence[Mapping[str, str] | str]) -> Sequence[tuple[str, str]]:
    """Components after validation, each as its heading and its text."""
    return [(each["heading"], each["text"]) for each in cast("Sequence[Mapping[str, str]]", given)]
