"""One setting names the chat model of all uses, and one for each use another."""

from typing import Any

import pytest

from recallog import Memory, ModelMisconfigured, Settings
from recallog.extending import ChatModel
from recallog.models.beliefs.askers import REFLECTOR
from recallog.models.beliefs.extractive import Extractive
from recallog.models.beliefs.model_reflector import ModelReflector
from recallog.models.conversations.askers import SUMMARIZER
from recallog.reactors.model_settings import endpoint_of, named_model
from support.chat_server import ChatServer, belief, completion
from support.events import event, run

pytestmark = pytest.mark.models("beliefs", "conversations", "facts")

URL = "https://models.example/v1#small"


def settings(**given: Any) -> Settings:
    return Settings.valid(ledger=None, views=None, index="off", **given)


def headers(chosen: Settings, url: str) -> str:
    """The Authorization header of requests to a model."""

    async def work() -> str:
        model = endpoint_of(chosen, url)
        await model.close()
        return str(model._headers.get("authorization", ""))

    return run(work())


def test_one_model_is_that_of_each_use() -> None:
    for use in ("reflect", "extract", "summarize", "answer"):
        assert named_model(settings(model=URL), use) == URL
        assert named_model(settings(), use) is None


def test_a_use_can_have_a_model_of_its_own_or_none() -> None:
    chosen = settings(model=URL, model_answer="http://localhost:1#large", model_reflect="off")
    assert named_model(chosen, "answer") == "http://localhost:1#large"
    assert named_model(chosen, "reflect") is None
    assert named_model(chosen, "extract") == URL


def test_the_key_is_sent_to_the_host_of_the_model_and_to_no_other() -> None:
    chosen = settings(model=URL, model_api_key="sk-secret")
    assert headers(chosen, URL) == "Bearer sk-secret"
    assert headers(chosen, "https://models.example/other#large") == "Bearer sk-secret"
    assert headers(chosen, "https://elsewhere.example/v1#small") == ""
    assert headers(chosen, "http://models.example/v1#small") == ""


def test_another_host_has_the_key_of_the_variable_that_its_url_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTHER_KEY", "sk-other")
    chosen = settings(model=URL, model_api_key="sk-secret")
    assert headers(chosen, "https://elsewhere.example/v1?api_key_variable=OTHER_KEY#small") == "Bearer sk-other"
    with pytest.raises(ModelMisconfigured, match="api_key_variable=MISSING"):
        headers(chosen, "https://elsewhere.example/v1?api_key_variable=MISSING#small")


def test_a_key_without_a_model_is_refused() -> None:
    with pytest.raises(ModelMisconfigured, match="RECALLOG_MODEL, which is not set"):
        headers(settings(model_reflect=URL, model_api_key="sk-secret"), URL)


def test_options_of_the_url_are_not_sent_and_the_rest_of_the_query_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")

    async def work(url: str) -> str:
        model = endpoint_of(settings(), f"{url}/v1?timeout_seconds=5&version=7#small")
        try:
            return await model.reply("Say yes.", "{}")
        finally:
            await model.close()

    with ChatServer(completion("yes")) as server:
        assert run(work(server.url)) == "yes"
    (request,) = server.requests
    assert request.path == "/v1/chat/completions?version=7"


@pytest.mark.parametrize("seconds", ["0", "-1", "soon", "inf", "nan"])
def test_a_timeout_is_a_positive_number(seconds: str) -> None:
    with pytest.raises(ModelMisconfigured, match="timeout_seconds="):
        endpoint_of(settings(), f"http://localhost:1?timeout_seconds={seconds}#small")


@pytest.mark.parametrize("url", ["localhost:8000#small", "http://host:port#small", "nothing"])
def test_an_invalid_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(ModelMisconfigured, match="the URL of the model must be"):
        endpoint_of(settings(), url)


class Echo(ChatModel):
    """Answers with a belief about the first event that it is shown."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_closed = False

    @property
    def name(self) -> str:
        return "echo"

    async def reply(self, instructions: str, data: str) -> str:
        self.asked.append(instructions)
        return '{"belief": "All is well.", "based_on": ["e-1"]}'

    async def close(self) -> None:
        self.is_closed = True


def test_a_model_of_the_program_is_asked_for_each_use_and_closed_once() -> None:
    model = Echo()

    async def work() -> str:
        async with Memory.in_memory(chat_model=model) as memory:
            assert isinstance(memory._access.asker(REFLECTOR), ModelReflector)
            assert memory._access.asker(SUMMARIZER) is not None
            await memory.publish(event("agent.configured", payload={"reflection_threshold": 1}))
            await memory.publish(event(id="e-1", payload={"text": "x"}))
            (reaction,) = await memory.react()
            return reaction.text

    assert run(work()) == "All is well."
    assert len(model.asked) == 1
    assert model.is_closed


def test_a_reflector_of_the_program_comes_before_its_model() -> None:
    rule = Extractive()

    async def work() -> bool:
        async with Memory.in_memory(chat_model=Echo(), reflector=rule) as memory:
            return memory._access.asker(REFLECTOR) is rule

    assert run(work())


def test_two_uses_of_one_model_share_its_connections(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "*")

    async def work(url: str) -> int:
        async with Memory.open(settings(home=tmp_path, model=f"{url}#small")) as memory:
            memory._access.asker(REFLECTOR)
            memory._access.asker(SUMMARIZER)
            return len(memory._access._chat_models)

    with ChatServer(belief("It is so.")) as server:
        assert run(work(server.url)) == 1
