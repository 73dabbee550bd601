"""The kinds of consensus and dissent."""

from recallog_schemas import text_rules
from recallog_schemas.kinds.kind import bookkeeping, episode
from recallog_schemas.models.consensus.payloads import ConsensusRecorded, ConsensusSuperseded, DissentRecorded
from recallog_schemas.text_rules import first_of

KINDS = (
    episode(
        "consensus.recorded",
        "Agents agreed on a conclusion.",
        ConsensusRecorded,
        text_rules.make_rule("{topic}: {conclusion}"),
        0.90,
        "topic conclusion key_claims cruxes domain tags",
        shared=True,
        directs=frozenset({"supersedes"}),
    ),
    episode(
        "dissent.recorded",
        "An agent objected to a conclusion.",
        DissentRecorded,
        first_of("content"),
        0.60,
        "topic content reasoning rebuttal",
        shared=True,
    ),
    bookkeeping("consensus.superseded", "A consensus was replaced.", ConsensusSuperseded),
)
