"""The lines of an agent's prompt, for the difference of its memory between two moments."""

from collections import Counter
from collections.abc import Collection, Mapping

from recallog.models.prompt.queries import ContextRequest, context
from recallog.queries.difference import KnownItem
from recallog.reading.readings import AgentReading


class PromptInventory:
    """The lines of the prompt that the agent would get without a query, each under the heading of its section."""

    section = "prompt"

    async def take(self, reading: AgentReading) -> Mapping[str, KnownItem]:
        prompt = await context(reading, ContextRequest(as_of=reading.as_of))
        found: dict[str, KnownItem] = {}
        repeated: Counter[tuple[str, str]] = Counter()
        for section in prompt.sections:
            heading = section.heading
            for line in prompt.text[section.start : section.end].removeprefix(heading).splitlines():
                if line:
                    repeated[heading, line] += 1
                    found[f"{heading}\n{line}\n{repeated[heading, line]}"] = KnownItem(line, shown_id=heading)
        return found

    async def explain_left(self, reading: AgentReading, ids: Collection[str]) -> Mapping[str, str]:
        return {}
