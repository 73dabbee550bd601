"""The payload of `agent.configured`: the settings of one agent, with their defaults."""

from typing import Annotated, Literal

from pydantic import Field

from recallog_schemas import limits
from recallog_schemas.kinds.payload import Count, ItemName, Label, Number, Part, Payload, Positive, Share, Tier

Dates = Literal["automatic", "always", "never"]
"""Whether the lines of events carry dates: where one answer spans more than 24 hours, in every answer, or in none."""
AUTOMATIC: Dates = "automatic"
ALWAYS: Dates = "always"
People = Literal["visitors", "users"]
"""What prompts call the people who speak to an agent: visitors of a world, or users of an assistant."""
VISITORS: People = "visitors"

CueLanguage = Literal["cue", "english", "chinese"]
"""The language of the lines of a daily log: that of the cue of each line, or always the same."""

Seconds = Annotated[Number, Field(gt=0)]


class SalienceWeights(Part):
    """The weights of the three terms of salience."""

    relevance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30
    """The weight of the relevance to a query."""
    recency: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.40
    """The weight of the recency in turns."""
    importance: Annotated[float, Field(ge=0, le=limits.WEIGHT_MAX)] = 0.30
    """The weight of the importance of the kind."""


class WorkingSettings(Part):
    """Working memory: the blocks that an agent keeps beside its events."""

    enabled: bool = True
    """Whether the agent has working memory."""
    auto_inject: bool = True
    """Whether prompts show it."""
    labels: Annotated[list[ItemName], Field(max_length=limits.WORKING_BLOCKS_MAX)] | None = None
    """The blocks that prompts show, in this order (null: all of them, by label)."""
    max_bytes: Annotated[int, Field(ge=1, le=limits.ITEM_VALUE_BYTES_MAX)] = limits.WORKING_DOCUMENT_BYTES
    """The bytes of the whole document; a longer one is cut, and ends in a mark."""
    include_in_rag: bool = False
    """Whether recall finds its blocks, as entries of the type `block`. A prompt shows none of them twice."""
    structured: bool = False
    """Whether prompts show it as the JSON of the document instead of headings."""


_TEMPLATE_PATTERN = r"^([^{}]|\{(current_state|balance|event_number|agent|last_action)\})*$"


class RagSettings(Part):
    """What prompts show under RECALLED."""

    enabled: bool = True
    """Whether there is a section RECALLED."""
    limit: Annotated[int, Field(ge=1, le=limits.RECALL_HITS_MAX)] = limits.PROMPT_RECALLED
    """How many memories it shows."""
    query_template: (
        Annotated[str, Field(max_length=limits.RECALL_QUERY_CHARS_MAX, pattern=_TEMPLATE_PATTERN)] | None
    ) = None
    """How the query is made, from {current_state} (the query of the caller, else the scene), {balance}, {event_number},
    {agent} and {last_action} (null: only {current_state}). Other braces are refused."""


class QualitySettings(Part):
    """The gate for texts with too little content, whether near-duplicates are merged, and whether prompts ask for
    lessons."""

    enabled: bool = False
    """Whether texts are judged before they are retained."""
    min_terms: Annotated[int, Field(ge=0, le=limits.RECALL_TERMS_MAX)] = 3
    """How many distinct content words a text needs after its prefix."""
    deduplicate: bool = False
    """Whether a reactor archives entries that say the same as a new entry in other words."""
    ask: bool = False
    """Whether prompts ask the agent what it has learned that is worth keeping."""


class TierLimits(Part):
    """Maximum number of live entries of an agent, by tier."""

    fast: Count = 1_000
    """In the tier FAST."""
    medium: Count = 500
    """In the tier MEDIUM."""
    slow: Count = 200
    """In the tier SLOW."""
    glacial: Count = 100
    """In the tier GLACIAL."""


class TierSeconds(Part):
    """How long an entry may stay without being accessed, by tier, in seconds."""

    fast: Seconds = 60
    """In the tier FAST."""
    medium: Seconds = 3_600
    """In the tier MEDIUM."""
    slow: Seconds = 86_400
    """In the tier SLOW."""
    glacial: Seconds = 604_800
    """In the tier GLACIAL; after it the entry is archived."""


class TierHours(Part):
    """After how many hours the importance of an entry has halved, by tier."""

    fast: Seconds = 1
    """In the tier FAST."""
    medium: Seconds = 24
    """In the tier MEDIUM."""
    slow: Seconds = 168
    """In the tier SLOW."""
    glacial: Seconds = 720
    """In the tier GLACIAL."""


class SpaceTiers(Part):
    """The tiers of a space."""

    default: Tier | None = None
    """The tier of entries that are retained without one, except summaries (none)."""


class SurpriseThresholds(Part):
    """The surprise that promotes an entry, by the tier that it leaves."""

    glacial: Share = 0.5
    """From the tier GLACIAL."""
    slow: Share = 0.6
    """From the tier SLOW."""
    medium: Share = 0.7
    """From the tier MEDIUM."""


class SuccessThreshold(Part):
    """The outcomes that promote an entry."""

    reports: Positive = 3
    """The successful outcomes that it needs since its last move."""
    rate: Share = 0.7
    """The share of the reported outcomes that must be successful."""


class TierSettings(Part):
    """How the entries of an agent that carry a tier move."""

    promotion_access: Positive = 3
    """After how many accesses since its last move an entry is promoted."""
    surprise: SurpriseThresholds = SurpriseThresholds.model_construct()
    """The surprise that promotes."""
    success: SuccessThreshold = SuccessThreshold.model_construct()
    """The outcomes that promote."""
    max: TierLimits = TierLimits.model_construct()
    """The maximum number of entries by tier."""
    ttl: TierSeconds = TierSeconds.model_construct()
    """The longest time without access by tier."""
    half_life: TierHours = TierHours.model_construct()
    """The half-life of importance by tier."""
    consolidate_every: Seconds = 3_600
    """The seconds between two plans."""


class CaptureSettings(Part):
    """Which calls of tools become entries."""

    enabled: bool = False
    """Whether calls are captured."""
    tools: Annotated[list[Label], Field(max_length=limits.CAPTURE_TOOLS_MAX)] | None = None
    """The tools whose calls are captured (null: all). If it is set, `skip` has no effect."""
    skip: Annotated[list[Label], Field(max_length=limits.CAPTURE_TOOLS_MAX)] | None = None
    """The tools whose calls are not captured."""
    max_per_minute: int = 120
    """How many calls per minute are captured; none for 0 or less."""
    case_sensitive: bool = False
    """Whether the case of tool names matters."""
    tier: Tier = "fast"
    """The tier of the entries."""
    importance: Share = 0.4
    """The importance of the entries."""
    max_detail_chars: Annotated[int, Field(ge=1, le=limits.TOOL_DETAILS_CHARS_MAX)] = 800
    """The characters of an entry's text."""


class DailySettings(Part):
    """The daily log: what was asked for and done in a session, as lines of documents."""

    enabled: bool = True
    """Whether it is written when a turn ends."""
    language: CueLanguage = "cue"
    """The language of its lines."""


class AgentConfigured(Payload):
    """Settings of one agent. An absent field keeps its value; null resets it to the default. A setting
    with fields is replaced as a whole."""

    window: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    """How many of the newest events the agent's memory shows (8)."""
    use_salience: bool | None = None
    """Whether prompts select memories by salience instead of the window (false)."""
    salience_weights: SalienceWeights | None = None
    """The weights of relevance, recency and importance (0.30, 0.40, 0.30)."""
    salience_top_k: Annotated[int, Field(ge=1, le=limits.LOG_EVENTS_KEPT)] | None = None
    """How many events are selected by salience (8)."""
    reflection_threshold: Annotated[int, Field(ge=1, le=limits.INTEGER_MAX)] | None = None
    """After how many visible events a reflection is due (never)."""
    persona: str | None = None
    """Who the agent is: the beginning of its prompts."""
    goal: str | None = None
    """The agent's own goal, shown after the persona."""
    dates: Dates | None = None
    """Whether lines carry dates: "always", "never", or where one answer spans more than 24 hours ("automatic")."""
    people: People | None = None
    """What prompts call the people who speak to it, by the heading VISITOR or USER ("visitors")."""
    working: WorkingSettings | None = None
    """Its working memory."""
    rag: RagSettings | None = None
    """The section RECALLED of its prompts."""
    quality: QualitySettings | None = None
    """The gate before what it retains, and whether near-duplicates are merged."""
    tiers: TierSettings | None = None
    """How its entries age."""
    capture: CaptureSettings | None = None
    """Which of its tool calls become entries."""
    extract_facts: bool | None = None
    """Whether facts are extracted from its turns (false)."""
    daily: DailySettings | None = None
    """What a turn that ends adds to its daily log."""
    auto_recall: bool | None = None
    """Whether the newest messages of a session are the query of its section RECALLED (false)."""
