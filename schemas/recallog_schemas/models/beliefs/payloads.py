"""The payloads of reflections: what an agent came to believe, or why it did not."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from recallog_schemas.kinds.payload import Id, Payload, Words
from recallog_schemas.models.beliefs import limits as beliefs_limits
from recallog_schemas.names import IN_NFC

Subject = Annotated[Words, Field(max_length=beliefs_limits.SUBJECT_CHARS_MAX)]
Subjects = Annotated[list[Subject], Field(min_length=1, max_length=beliefs_limits.SUBJECTS_MAX)]
Stance = Literal["for", "against"]


def _about(value: object) -> object:
    """Subjects as they were given. Its message covers both forms; the messages of a union would cover one form each."""
    named = value if isinstance(value, list) else [value]
    chars, most = beliefs_limits.SUBJECT_CHARS_MAX, beliefs_limits.SUBJECTS_MAX
    if value is None or (
        1 <= len(named) <= most and all(isinstance(each, str) and each.strip() and len(each) <= chars for each in named)
    ):
        return value
    raise PydanticCustomError("about", f"should be a text of up to {chars} characters, or a list of 1 to {most} texts")


class Reflected(Payload):
    """What an agent has come to believe. `belief` or `text` is required."""

    belief: str | None = None
    """What the agent believes."""
    text: str | None = None
    """The same, if there is no `belief`."""
    based_on: list[Annotated[str, IN_NFC]] = Field(default_factory=list)
    """The ids of the events that the belief rests on."""
    insights: Annotated[list[str], Field(max_length=beliefs_limits.INSIGHTS_MAX)] | None = None
    """Further insights, in sentences."""
    about: Annotated[Subject | Subjects | None, BeforeValidator(_about)] = None
    """The subject of the belief, or up to 4 of them: a name or a question that beliefs can agree on. Upper and lower
    case, and white space, do not distinguish subjects."""
    stance: Stance | None = None
    """Whether the belief is for or against its subject. Beliefs without a stance neither agree nor disagree."""
    supersedes: Id | None = None
    """The id of an earlier belief of the same agent on one of the subjects, which no longer holds."""

    @model_validator(mode="after")
    def _says_something(self) -> "Reflected":
        if self.belief is None and self.text is None:
            raise PydanticCustomError("missing", "give belief (or text)")
        return self


class ReflectionFailed(Payload):
    trigger: str
    """The trigger that was not answered."""
    reason: str
    """Why the reflector failed."""
