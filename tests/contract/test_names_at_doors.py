"""Every valid name at every door: what is published under it is found under it, however it is composed, and nothing of
another one is. What is not a name is refused at every door, before anything is written."""

import asyncio
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from flip.memories import in_process
from recallog import Event, InvalidInput, Memory, Remote, Settings
from recallog_schemas import names
from recallog_service.access import Access
from recallog_service.http.app import Application
from recallog_service.http.mounting import list_mounted
from support.cli import recallog
from support.events import event
from support.http import served
from support.people import COLLIDING, OF_PEOPLE, REFUSED, otherwise, valid
from support.toy_embedder import ToyEmbedder
from support.waiting import WAIT_SECONDS

pytestmark = pytest.mark.models("all")

ALL = 1_000
Said = dict[tuple[str, str], list[str]]


class World:
    """A memory in a folder, and what was published there under each pair of names."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home, index="off")
        self.said: Said = defaultdict(list)
        self.count = 0

    def fields(self, space: str, agent: str, door: str) -> dict[str, Any]:
        self.count += 1
        text = f"{door} {self.count}"
        self.said[names.in_nfc(space), names.in_nfc(agent)].append(text)
        return {"space": space, "agent": agent, "kind": "agent.spoke", "payload": {"text": text}}


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        yield World(Path(folder))


@settings(max_examples=25)
@given(valid, valid, st.booleans())
@example("-kQ7_x", "--help", False)
@example("a/../b", "C:\\Users\\ann", False)
@example("Jürgen", "张伟", True)
@example("{space}", "%7Bagent%7D", False)
def test_what_is_published_under_a_name_is_found_under_it_at_every_door(
    world: World, space: str, agent: str, composed: bool
) -> None:
    other = otherwise if composed else names.in_nfc
    asyncio.run(_in_process(world, space, agent, other(space), other(agent)))
    home = ("--home", world.settings.home)
    fields = world.fields(other(space), agent, "command")
    written = recallog("publish", *home, "--", fields["space"], agent, "agent.spoke", fields["payload"]["text"])
    assert written.code == 0, written.err
    asked = recallog("episodic", "--json", "--window", ALL, *home, "--", space, other(agent))
    expected = world.said[names.in_nfc(space), names.in_nfc(agent)]
    assert [each["text"] for each in asked.json["memories"]] == expected
    assert (asked.json["space"], asked.json["agent"]) == (names.in_nfc(space), names.in_nfc(agent))
    tailed = recallog("tail", "--json", *home, f"--space={other(space)}")
    assert {json.loads(line)["event"]["space"] for line in tailed.out.splitlines()} == {names.in_nfc(space)}


async def _in_process(world: World, space: str, agent: str, other_space: str, other_agent: str) -> None:
    async with Memory.open(world.settings) as memory:
        app = Application(memory, Access.of(world.settings), mounted=list_mounted(memory))
        async with (
            served(app) as (_, url),
            Remote(url) as remote,
            httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client,
        ):
            await memory.publish(Event(**world.fields(space, agent, "Python")))
            await memory.publish(world.fields(other_space, other_agent, "a dict"))
            await remote.publish(world.fields(other_space, agent, "remote"))
            fields = world.fields(space, other_agent, "HTTP")
            path = f"/v1/spaces/{quote(other_space, safe='')}/events"
            assert (await client.post(path, json=fields)).status_code == 201
            headers = {
                "ce-specversion": "1.0", "ce-id": f"e-{world.count}", "ce-type": "agent.spoke", "ce-source":
                quote(agent, safe=""), "Content-Type": "text/plain", "ce-audience": quote(quote(agent, safe="")),
            }  # fmt: skip
            text = world.fields(space, agent, "CloudEvents")["payload"]["text"]
            assert (await client.post(path, content=text, headers=headers)).status_code == 201

            expected = world.said[names.in_nfc(space), names.in_nfc(agent)]
            for asked in (memory, remote):
                for named in ((space, agent), (other_space, other_agent)):
                    found = await asked.episodic(*named, window=ALL)
                    assert [each.text for each in found.memories] == expected
            segments = f"/v1/spaces/{quote(other_space, safe='')}/agents/{quote(other_agent, safe='')}/episodic"
            answer = (await client.get(segments, params={"window": ALL})).json()
            assert [each["text"] for each in answer["memories"]] == expected
            page = (await client.get(path, params={"limit": 1000})).json()
            of_space = {
                text for (each, _), texts in world.said.items() if each == names.in_nfc(space) for text in texts
            }
            assert {each["event"]["payload"]["text"] for each in page["items"]} == of_space

            assert {each.space for each in (await remote.spaces()).items} == {each for each, _ in world.said}
            agents = {each for one, each in world.said if one == names.in_nfc(space)}
            assert {each.name for each in (await memory.agents(other_space)).items} == agents
            mcp = f"{url}/mcp?space={quote(other_space, safe='')}&agent={quote(other_agent, safe='')}"
            async with Client(streamable_http_client(mcp)) as model:
                (shown,) = (await model.call_tool("recall_memory", {"query": expected[-1], "top_k": 20})).content
                assert isinstance(shown, TextContent)
                assert expected[-1] in shown.text
                assert not {
                    text for text in set().union(*world.said.values()) - {*expected} if f" {text}\n" in shown.text
                }


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_not_a_name_is_refused_at_every_door(world: World, text: str, why: str) -> None:
    async def work() -> None:
        async with Memory.open(world.settings) as memory:
            before = await memory.admin.ledger_ends()
            async with (
                served(Application(memory, Access.of(world.settings))) as (_, url),
                Remote(url) as remote,
                httpx.AsyncClient(base_url=url, timeout=WAIT_SECONDS) as client,
            ):
                fields = {"space": "village", "agent": text, "kind": "agent.spoke", "payload": {"text": "x"}}
                for asked in (memory, remote):
                    for refused in (asked.publish(fields), asked.episodic("village", text), asked.scene(text)):
                        with pytest.raises(InvalidInput, match="is not a name") as raised:
                            await refused
                        assert why in str(raised.value)
                with suppress(httpx.InvalidURL):
                    sent = await client.post("/v1/spaces/village/events", json=fields)
                    assert sent.status_code == 422
                    assert why in sent.json()["detail"]
            assert await memory.admin.ledger_ends() == before

    asyncio.run(work())
    if "\0" not in text:
        refused = recallog("publish", "--home", world.settings.home, "--", "village", text, "agent.spoke", "x")
        assert refused.code == 1
        assert "is not a name" in refused.err


def test_the_index_finds_nothing_of_another_name(tmp_path: Path) -> None:
    """Names of spaces that the index writes in a form of its own, with documents, entries, and entries that ended."""
    spaces = [*dict.fromkeys((*COLLIDING, *OF_PEOPLE))]

    async def work() -> None:
        async with in_process(tmp_path, embedder=ToyEmbedder()) as memory:
            said = [event(space=each, agent=each, payload={"text": "Bread is sold"}) for each in spaces]
            await memory.publish_many(said)
            for each in spaces:
                entry = await memory.long_term.retain(each, each, "Bread is kept")
                await memory.long_term.update(each, each, entry.id, text="Bread is kept warm")
                await memory.items.put(each, each, "workspace", "bread.md", "Bread is baked")
            for each in spaces:
                found = await memory.recall(each, otherwise(each), "bread", top_k=20, wait_index=True)
                assert found.degraded is None
                assert {hit.event.space for hit in found.hits} == {each}
                assert {hit.event.agent for hit in found.hits} == {each}
                assert {hit.text for hit in found.hits} == {"Bread is sold", "Bread is kept warm"}
                within = await memory.workspace.search(each, each, "bread")
                assert [hit.text for hit in within.hits] == ["Bread is baked"]

    asyncio.run(work())
