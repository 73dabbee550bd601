"""The folders that the console is opened on: what people store, what nobody may see, and texts that attack a page.

Each function fills an empty folder. It runs in a thread of its own, since playwright has the loop of the others.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from recallog import Event, Memory, Settings
from recallog_demo import village
from recallog_eval import locomo
from support import altering, guarded_world, real_data

SCRIPT = "<script>document.title = 'attacked'; alert(1)</script>"
IMAGE = "<img src=x onerror=\"document.title = 'attacked'\">"
QUOTED = "\" onmouseover=\"document.title='attacked'\" x='"
HOSTILE = {
    "script": SCRIPT,
    "image": IMAGE,
    "quoted": QUOTED,
    "braces": "{{7*7}} ${7*7} {% raw %} #{7*7} <%= 7*7 %>",
    "address": "javascript:alert(1)",
    "entity": "&lt;b&gt; &amp;amp; &#x27;",
    "comment": "--> <!-- ]]> </textarea></title></style>",
    "markdown": "[click](javascript:alert(1)) **bold** `code` ![](http://127.0.0.2/x.png)",
    "ansi": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b31m",
    "bidi": "left \u202e thgir \u202c \u2066 isolated \u2069",
    "nul": "\u0001 \u0008 \ufeff \u200b \u2028 line \u0085 end",
    "null": "null",
    "none": "None undefined NaN [object Object] true",
    "rtl": "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u05e9\u05dc\u05d5\u05dd",
    "astral": "\U0001f9d1\u200d\U0001f33e \U0001f468\u200d\U0001f469 Z\u0351\u036b\u0343\u036a\u0302a\u0363\u0351lgo",
    "word": "w" * 400,
}
"""Texts that a page may only show, by what is special in each."""
SHOWN = {
    "script": SCRIPT,
    "image": IMAGE,
    "braces": "{{7*7}} ${7*7}",
    "address": "javascript:alert(1)",
    "entity": "&lt;b&gt; &amp;amp; &#x27;",
    "comment": "--> <!-- ]]> </textarea></title></style>",
    "markdown": "[click](javascript:alert(1)) **bold**",
}
"""What a person reads of them: the same characters."""
NAMES = (
    SCRIPT,
    QUOTED,
    "{{7+7}}",
    "a/b?c=d#e%20f&g",
    "null",
    "undefined",
    "n" * 128,
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
)
"""Names of spaces and of agents."""
SPACE = "hostile"
LONG_TEXT = "A line of sixty kilobytes goes on and on. " * 1_430
LARGEST_TEXT = "x" * 250_000
"""One line, as large as an event may be."""

FORBIDDEN = "zaffre"
"""In every text, name and id of a space that the keys of `guarded` may not see."""
FORBIDDEN_SPACE = f"{FORBIDDEN}/space"
HIDDEN = guarded_world.HIDDEN
"""In what another agent of their space keeps to itself."""


def in_thread(work: Callable[[], Awaitable[Any]]) -> Any:
    """The result of a coroutine that runs in another thread."""

    async def run() -> Any:
        return await work()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(run())).result()


async def hostile(home: Path) -> None:
    """Texts and names that attack a page, in every field that an event has."""
    async with Memory.open(Settings(home=home, index="off")) as memory:
        await memory.publish_many([*_hostile_events(), *_hostile_names()])
        for name, text in HOSTILE.items():
            await _keep_everywhere(memory, name, text)
    _plant_dead_letters(home)


def _hostile_events() -> list[Event]:
    events = [
        _event(f"said-{name}", kind, payload={"text": text}, session=_short(text))
        for name, text in HOSTILE.items()
        for kind in ("agent.spoke", "world.observed", "user.injected")
        for name in [f"{name}-{kind}"]
    ]
    events += [
        _event(f"tool-{name}", "tool.used", payload={"tool": text, "arguments": {text: text}, "result": text})
        for name, text in HOSTILE.items()
    ]
    events += [
        _event(_short(text), "agent.reflected", payload={"belief": text}, audience=list(NAMES[:4]))
        for text in HOSTILE.values()
    ]
    return [
        *events,
        _event("said-long", "agent.spoke", payload={"text": LONG_TEXT}),
        _event("said-largest", "agent.spoke", payload={"text": LARGEST_TEXT}),
        _event("deep", "agent.spoke", payload=_deep(20)),
        _event("settings", "agent.configured", payload={"persona": SCRIPT, "goal": HOSTILE["braces"]}),
    ]


def _hostile_names() -> list[Event]:
    return [
        Event(space=space, agent=agent, kind="agent.spoke", payload={"text": "Good morning."}, session=agent[:120])
        for space, agent in [(SPACE, name) for name in NAMES] + [(name, "mallory") for name in NAMES]
    ]


async def _keep_everywhere(memory: Memory, name: str, text: str) -> None:
    """The text as an entry, an item, a message, a consensus and a dissent, and as what these are filed under."""
    label, agent = _short(text), "mallory"
    await memory.long_term.retain(
        SPACE,
        agent,
        text,
        entity=label,
        category=label,
        topic=label,
        source=text,
        metadata={text: text},
        subject=label,
        entry_id=f"entry-{name}",
    )
    await memory.items.put(SPACE, agent, "notes", name, text)
    await memory.items.put(SPACE, agent, "workspace", f"{name}.md", f"# {text}\n\n{text}")
    await memory.working.set(SPACE, agent, name, text)
    said: Any = [{"role": "user", "content": text}, {"role": "assistant", "content": text}]
    await memory.conversation.add(SPACE, agent, f"talk-{name}", said)
    await memory.consensus.record(SPACE, agent, text, text, confidence=0.5, key_claims=[text], tags=[label])
    await memory.consensus.dissent(SPACE, agent, text, topic=text, type="risk_warning", confidence=0.5, reasoning=text)


def _plant_dead_letters(home: Path) -> None:
    """Records that no view can have: one that is not an event, and one that breaks a rule of its kind."""
    ledger = home / "ledger.db"
    altering.plant_record(ledger, f"not an event: {SCRIPT}".encode(), "broken", space=SPACE)
    wrong = _event("wrong", "agent.spoke", payload={"text": "words"}).model_dump(mode="json", exclude_none=True)
    wrong["payload"]["text"] = {SCRIPT: SCRIPT}
    altering.plant_record(ledger, json.dumps(wrong).encode(), "wrong", space=SPACE)


def _event(id_: str, kind: str, **fields: Any) -> Event:
    return Event(id=id_, space=SPACE, agent="mallory", kind=kind, **fields)


def _deep(depth: int) -> dict[str, Any]:
    return {"text": "nested", "inner": json.loads('{"a":' * depth + '"' + "deep" + '"' + "}" * depth)}


def _short(text: str) -> str:
    """As long as an id or a label may be."""
    return text[:120]


async def guarded(home: Path) -> None:
    """Spaces and agents of which each key sees a part."""
    async with Memory.open(Settings(home=home, index="off")) as memory:
        await guarded_world.populate(memory)
        space, agent = FORBIDDEN_SPACE, f"{FORBIDDEN}-agent"
        text = f"{FORBIDDEN} words about bread"
        await memory.publish_many(
            [
                Event(space=space, agent=agent, kind=kind, payload=payload, session=f"{FORBIDDEN}-session")
                for kind, payload in (
                    ("world.observed", {"text": text}),
                    ("agent.spoke", {"text": text}),
                    ("agent.reflected", {"belief": text}),
                )
            ]
        )
        await memory.long_term.retain(space, agent, text, entity=f"{FORBIDDEN} flour")
        await memory.consensus.record(space, agent, text, text, confidence=0.5)


async def of_demo(home: Path) -> None:
    """The village of `recallog demo`."""
    async with Memory.open(village.settings(home)) as memory:
        await memory.publish_many(village.recording())


async def conversation(home: Path) -> None:
    """Two people talk for months: a LoCoMo conversation of the real data if it is there, else a made one."""
    folder = real_data.folder()
    data = (folder / "locomo-tuning.json").read_bytes() if folder is not None else _made_conversation()
    items = locomo.read(json.dumps(json.loads(data)[:1]).encode(), subjects=True)
    async with Memory.open(Settings(home=home, index="off")) as memory:
        await memory.publish_many([item.event for item in items if item.event is not None])


def _made_conversation() -> bytes:
    talk: dict[str, Any] = {"speaker_a": "Caroline", "speaker_b": "Melanie"}
    for number in range(1, 20):
        talk[f"session_{number}_date_time"] = f"1:{number + 10} pm on {number} May, 2023"
        talk[f"session_{number}"] = [
            {
                "speaker": ("Caroline", "Melanie")[turn % 2],
                "dia_id": f"D{number}:{turn}",
                "text": f"On day {number} I painted picture {turn} of the lake, and the children helped me. " * 3,
            }
            for turn in range(1, 21)
        ]
    return json.dumps([{"sample_id": "conv-1", "conversation": talk, "qa": []}]).encode()


STORY = "shop"
BELIEF, OBJECTION, PERSON = "Blue kettles sell out on Fridays.", "They sold out because of the sale.", "Rae"
REASONS = ("The blue kettles were gone on Friday.", "On Friday nobody got a blue kettle any more.")
PRINTED = "A kettle costs 40 francs elsewhere."
ON_TUESDAY, ON_WEDNESDAY = "Marlow delivers the kettles.", "Pike delivers the kettles now."
BROKEN = "broken"


async def story(home: Path) -> None:
    """A shop of two agents, with an answer for each question that people bring to the console."""
    said = (
        ("gone", "2026-02-20", "world.observed", {"text": REASONS[0]}),
        ("gone-again", "2026-02-27", "world.observed", {"text": REASONS[1]}),
        ("belief", "2026-02-28", "agent.reflected", {"belief": BELIEF, "based_on": ["gone", "gone-again"]}),
        ("tuesday", "2026-03-03", "agent.spoke", {"text": ON_TUESDAY}),
        ("wednesday", "2026-03-04", "agent.spoke", {"text": ON_WEDNESDAY}),
        ("printed", "2026-03-04", "tool.used", {"tool": "browse", "result": PRINTED}),
    )
    async with Memory.open(Settings(home=home, index="off")) as memory:
        await memory.publish_many(
            [
                Event(id=id_, space=STORY, agent="anna", kind=kind, at=f"{day}T10:00:00Z", turn=turn, payload=payload)
                for turn, (id_, day, kind, payload) in enumerate(said)
            ]
        )
        await memory.consensus.record(STORY, "anna", "kettles on Fridays", BELIEF, confidence=0.8)
        await memory.consensus.dissent(
            STORY, "bert", OBJECTION, topic="kettles on Fridays", type="fundamental_disagreement", confidence=0.9
        )
        await memory.long_term.retain(STORY, "anna", f"{PERSON} drinks oat milk.", subject=PERSON, entry_id="milk")
        await memory.long_term.retain(STORY, "anna", f"{PERSON} lives by the weir.", subject=PERSON, entry_id="weir")
    altering.plant_record(home / "ledger.db", b"{not JSON", BROKEN, space=STORY)


async def empty(home: Path) -> None:
    """Nothing at all."""
    home.mkdir(parents=True, exist_ok=True)
