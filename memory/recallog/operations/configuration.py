"""The settings of an agent and of a space, as operations take them. The kinds of their events describe them.

A setting that is not given keeps its value, and None resets it to its default. A setting with fields is replaced as a
whole.
"""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from pydantic import Field

from recallog.operations.parameters import OptionalObject
from recallog_schemas import limits
from recallog_schemas.kinds.settings import Dates, People

_Kept = Annotated[int | None, Field(ge=1, le=limits.LOG_EVENTS_KEPT)]
_Kinds = Annotated[Sequence[str] | None, Field(max_length=limits.SHARED_KINDS_MAX)]


class AgentOptions(TypedDict, total=False):
    """The settings of an agent to change, see `agent.configured`."""

    window: Annotated[_Kept, Field(description="How many of the newest events its memory shows (8).")]
    use_salience: Annotated[bool | None, Field(description="Prompts select memories by salience (false).")]
    salience_weights: Annotated[OptionalObject, Field(description="relevance, recency and importance: 0.3, 0.4, 0.3.")]
    salience_top_k: Annotated[_Kept, Field(description="How many events are selected by salience (8).")]
    reflection_threshold: Annotated[
        int | None,
        Field(ge=1, le=limits.INTEGER_MAX, description="After how many visible events a reflection is due (never)."),
    ]
    persona: Annotated[str | None, Field(description="Who the agent is: the beginning of its prompts.")]
    goal: Annotated[str | None, Field(description="Its own goal, after the persona.")]
    dates: Annotated[Dates | None, Field(description="Whether lines of events carry dates (automatic).")]
    people: Annotated[People | None, Field(description="What prompts call those who speak to it: visitors or users.")]
    working: Annotated[OptionalObject, Field(description="Working memory: enabled, auto_inject, labels and others.")]
    rag: Annotated[OptionalObject, Field(description="The section RECALLED: enabled, limit, query_template.")]
    quality: Annotated[
        OptionalObject, Field(description="The gate before what it retains: enabled, min_terms; deduplicate; ask.")
    ]
    tiers: Annotated[OptionalObject, Field(description="How its entries age: max, ttl, half_life and others.")]
    capture: Annotated[
        OptionalObject, Field(description="Which calls of tools become entries: enabled, tools and others.")
    ]
    extract_facts: Annotated[bool | None, Field(description="Facts are extracted from its turns (false).")]
    daily: Annotated[OptionalObject, Field(description="Its daily log: enabled, language.")]
    auto_recall: Annotated[
        bool | None, Field(description="The newest messages of a session are the query of RECALLED (false).")
    ]


class SpaceOptions(TypedDict, total=False):
    """The settings of a space to change, see `space.configured`."""

    shared_kinds: Annotated[_Kinds, Field(description="The kinds that all its agents see, from now on.")]
    scene_kinds: Annotated[_Kinds, Field(description="The kinds whose newest shared events are the scene of prompts.")]
    scene_notes: Annotated[
        OptionalObject,
        Field(description="How many of the newest shared events of a further kind are in scenes, by kind."),
    ]
    kinds: Annotated[
        OptionalObject, Field(description="Declarations of kinds of your own, by name; null takes one back.")
    ]
    trust: Annotated[
        OptionalObject,
        Field(description="Which sources are trusted: kinds, agents; for facts, beliefs, consolidation."),
    ]
    tiers: Annotated[OptionalObject, Field(description="`default`: the tier of entries that are retained without one.")]
