"""The assistant: what it remembers of whom, after a restart, over HTTP, and after a user was forgotten."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from assistant import AGENT, Assistant, web
from assistant_models import Message, Model, endpoint, quote
from recallog import Memory

TOKENS = {"ann": "token-of-ann", "bob": "token-of-bob"}


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are compared, so that no test waits for a model of the index."""
    monkeypatch.setenv("RECALLOG_INDEX", "off")


async def talk(home: Path, *turns: tuple[str, str, str], model: Model = quote) -> list[str]:
    """The answers to turns of user, session and text, by a new assistant, which reacts at the end."""
    async with Memory.open(home) as memory:
        assistant = Assistant(memory, model)
        answers = [await assistant.reply(user, text, session) for user, session, text in turns]
        await memory.react()
        return answers


def test_a_user_is_remembered_after_a_restart_and_by_no_other_user(tmp_path: Path) -> None:
    asyncio.run(talk(tmp_path, ("ann", "monday", "My sister Lea lives in Bern."), ("bob", "monday", "I bake bread.")))
    question = "Where does my sister live?"
    ann, bob = asyncio.run(talk(tmp_path, ("ann", "friday", question), ("bob", "friday", question)))
    assert "Bern" in ann
    assert bob == "I will remember that."


def test_what_was_said_in_the_same_session_is_quoted_and_questions_are_not(tmp_path: Path) -> None:
    turns = [("ann", "monday", text) for text in ("My sister Lea lives in Bern.", "Where does my sister live?")]
    assert asyncio.run(talk(tmp_path, *turns, turns[-1]))[1:] == ['You told me: "My sister Lea lives in Bern."'] * 2


def test_the_rule_quotes_neither_headings_nor_its_own_answers(tmp_path: Path) -> None:
    turns = [("ann", "monday", text) for text in ("My sister Lea lives in Bern.", "Where does my sister live?")]
    later = [("ann", "friday", "Is that your painting?"), ("ann", "friday", "Say again where my sister lives.")]
    answers = asyncio.run(talk(tmp_path, *turns, *later))
    assert answers[2:] == ["I will remember that.", 'You told me: "My sister Lea lives in Bern."']


def test_the_model_gets_each_message_once(tmp_path: Path) -> None:
    asked: list[Sequence[Message]] = []

    async def listen(messages: Sequence[Message]) -> str:
        asked.append(messages)
        return "Noted."

    turns = [("ann", "monday", "The oven is hot."), ("ann", "monday", "The flour is dear.")]
    asyncio.run(talk(tmp_path, *turns, model=listen))
    everything = "\n".join(message["content"] for message in asked[-1])
    assert [everything.count(text) for text in ("The oven is hot.", "Noted.", "The flour is dear.")] == [1, 1, 1]


def test_facts_are_extracted_kept_and_forgotten_for_one_user_alone(tmp_path: Path) -> None:
    said = "My sister Lea lives in Bern."
    asyncio.run(talk(tmp_path, ("ann", "monday", said), ("bob", "monday", said)))
    asyncio.run(talk(tmp_path, ("ann", "friday", "Where does my sister live?")))  # what it quotes is not its own fact

    async def work() -> tuple[list[str], list[str], list[str], bool]:
        async with Memory.open(tmp_path) as memory:
            assistant = Assistant(memory)
            await assistant.keep("ann", "Ann is allergic to nuts.")
            before = await assistant.facts_about("ann")
            assert await assistant.forget("ann") > 0
            prompt = await memory.context("user/ann", AGENT, query="Where does Lea live?")
            hidden = "Bern" not in prompt.text and "erased" not in prompt.text
            found = await memory.admin.scan(["allergic"])
            assert not found.found, found
            return before, await assistant.facts_about("ann"), await assistant.facts_about("bob"), hidden

    before, ann, bob, hidden = asyncio.run(work())
    assert before == ["Ann is allergic to nuts.", "ann's sister Lea lives in Bern."]
    assert (ann, bob, hidden) == ([], ["bob's sister Lea lives in Bern."], True)


def test_a_token_opens_the_memory_of_its_user_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with Memory.open(tmp_path) as memory:
            await asyncio.to_thread(browse, TestClient(web(Assistant(memory), TOKENS)))

    def browse(client: TestClient) -> None:
        ann, bob = ({"Authorization": f"Bearer {token}"} for token in TOKENS.values())
        assert client.get("/memory").status_code == 401
        assert client.get("/memory", headers={"Authorization": "Bearer wrong"}).status_code == 401
        assert client.post("/chat", headers=ann, json={"txt": "Hello"}).status_code == 400
        assert client.post("/chat", headers=ann, json={"text": 7}).status_code == 400
        assert client.post("/chat", headers=ann, json={"text": "Plums are sweet."}).status_code == 200
        again = {"text": "Which plums did I mean?", "session": "later"}
        assert "Plums are sweet." in client.post("/chat", headers=ann, json=again).json()["answer"]
        assert "Plums" not in client.post("/chat", headers=bob, json=again).json()["answer"]
        assert client.delete("/memory", headers=bob).json()["erased"] == 2
        assert client.delete("/memory", headers=ann).json()["erased"] == 4

    asyncio.run(work())


class Completions(BaseHTTPRequestHandler):
    """An OpenAI-compatible endpoint: repeats the last message, or fails. The model `other` answers in another form."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_right = (self.path, self.headers["Authorization"]) == ("/v1/chat/completions", "Bearer key")
        answer = {"choices": [{"message": {"content": f"{body['model']}: {body['messages'][-1]['content']}"}}]}
        if body["model"] == "other":
            answer = {"choices": []}
        self.send_response(200 if is_right else 500)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Completions) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()
        thread.join()


def test_an_endpoint_can_be_the_model(tmp_path: Path, url: str) -> None:
    turn = ("ann", "monday", "Hello.")
    assert asyncio.run(talk(tmp_path, turn, model=endpoint(url, "small", "key"))) == ["small: Hello."]


@pytest.mark.parametrize(("name", "key"), [("small", "wrong"), ("other", "key")])
def test_if_the_endpoint_fails_what_was_said_is_kept(tmp_path: Path, url: str, name: str, key: str) -> None:
    async def work() -> tuple[int, list[str]]:
        async with Memory.open(tmp_path) as memory:
            client = TestClient(web(Assistant(memory, endpoint(url, name, key)), TOKENS))
            headers = {"Authorization": f"Bearer {TOKENS['ann']}"}
            failed = await asyncio.to_thread(client.post, "/chat", headers=headers, json={"text": "Plums are sweet."})
            kept = (await memory.conversation.messages("user/ann", AGENT, "main")).messages
            return failed.status_code, [message["content"] for message in kept]

    assert asyncio.run(work()) == (502, ["Plums are sweet."])


def test_the_terminal_answers_shows_and_forgets(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "assistant", "--home", str(tmp_path / "memory"), "chat", "ann"]
    too_long = "plums " * 200_000
    lines = f"Plums are sweet.\n/keep Ann likes plums.\n/keep {too_long}\n/known\n/forgot\n/forget\n/known\n"
    ended = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=60)
    assert "Ann likes plums." in ended.stdout
    assert "(failed: " in ended.stdout
    assert "events erased" in ended.stdout  # 3, or 4 if facts have been extracted meanwhile
    assert ended.stdout.rstrip("> \n").endswith("(nothing)")
