"""An assistant of many users. Each user has a space, and can see and erase what is remembered.

`assistant chat ann` talks in the terminal; `assistant serve users.json` answers over HTTP.
"""

import argparse
import asyncio
import hmac
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from assistant_models import Model, endpoint, quote
from recallog import InvalidArgument, Memory, RecallogError

AGENT = "assistant"
PERSONA = "You help one person. Use what is recalled, and say so if you do not know."
FACTS_SHOWN = 50
HELP = "Say something; /known shows what is remembered, /keep TEXT adds to it, /forget erases it, Ctrl-D ends."


class Assistant:
    """Answers users, and remembers each of them in a space of their own."""

    def __init__(self, memory: Memory, model: Model = quote) -> None:
        self._memory = memory
        self._model = model
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def reply(self, user: str, text: str, session: str = "main") -> str:
        """The answer to what a user says. What was said is durable before the model is called."""
        space = f"user/{user}"
        chat = space, AGENT, session
        async with self._turns[user]:
            settings = {"persona": PERSONA, "auto_recall": True, "extract_facts": True}
            await self._memory.configure_agent(space, AGENT, event_id="settings", **settings)
            said = {"role": "user", "name": user, "content": text}
            await self._memory.conversation.add(*chat, said, continues=True, subject=user)
            prompt = await self._memory.context(space, AGENT, session=session, beside_messages=True)
            history = (await self._memory.conversation.messages(*chat)).messages
            answer = await self._model([{"role": "system", "content": prompt.text}, *history])
            answered = {"role": "assistant", "content": answer}
            await self._memory.conversation.add(*chat, answered, continues=True, subject=user)
            await self._memory.conversation.end_turn(*chat)
        return answer

    async def facts_about(self, user: str) -> list[str]:
        """The facts that are remembered of a user, newest first."""
        page = await self._memory.long_term.list(f"user/{user}", AGENT, limit=FACTS_SHOWN)
        return [entry.text for entry in page.entries]

    async def keep(self, user: str, text: str) -> None:
        """Remember a fact that the user states as one."""
        await self._memory.long_term.retain(f"user/{user}", AGENT, text, subject=user)

    async def forget(self, user: str) -> int:
        """Erase what the user said, the answers, and all that was made from both. Returns the number of events."""
        async with self._turns[user]:
            report = await self._memory.erase(f"user/{user}", subject=user, reason="the user asked for it")
        return report.erased


async def chat(assistant: Assistant, user: str) -> None:
    """Talk in the terminal until the input ends."""
    print(HELP)
    while True:
        try:
            line = (await asyncio.to_thread(input, "> ")).strip()
        except EOFError:
            return
        command, _, rest = line.partition(" ")
        try:
            if command == "/known":
                print("\n".join(await assistant.facts_about(user)) or "(nothing)")
            elif command == "/keep" and rest:
                await assistant.keep(user, rest)
            elif command == "/forget":
                print(f"{await assistant.forget(user)} events erased")
            elif line.startswith("/"):
                print(HELP)
            elif line:
                print(await assistant.reply(user, line))
        except (httpx.HTTPError, RecallogError) as error:
            print(f"(failed: {error})")


def web(assistant: Assistant, tokens: Mapping[str, str]) -> Starlette:
    """The door for browsers and programs. `tokens` has the secret of each user: it selects the user."""

    def user_of(request: Request) -> str:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            for user, expected in tokens.items():
                if hmac.compare_digest(token.encode(), expected.encode()):
                    return user
        raise HTTPException(401, "a valid token is missing", {"WWW-Authenticate": "Bearer"})

    async def say(request: Request) -> JSONResponse:
        user = user_of(request)
        try:
            body = await request.json()
            text, session = body["text"], body.get("session", "main")
            return JSONResponse({"answer": await assistant.reply(user, text, session)})
        except (ValueError, LookupError, TypeError, AttributeError, InvalidArgument) as error:
            raise HTTPException(400, f"expected {{text, session?}}: {error}") from error
        except httpx.HTTPError as error:
            raise HTTPException(502, "the model did not answer; what you said is kept") from error

    async def list_facts(request: Request) -> JSONResponse:
        return JSONResponse({"facts": await assistant.facts_about(user_of(request))})

    async def forget(request: Request) -> JSONResponse:
        return JSONResponse({"erased": await assistant.forget(user_of(request))})

    return Starlette(
        routes=[
            Route("/chat", say, methods=["POST"]),
            Route("/memory", list_facts, methods=["GET"]),
            Route("/memory", forget, methods=["DELETE"]),
        ]
    )


@asynccontextmanager
async def opened(home: str, model: Model) -> AsyncIterator[Assistant]:
    """The assistant of a folder. Facts are extracted in the background."""
    async with Memory.open(home, reactors=True) as memory:
        yield Assistant(memory, model)


def model_of_environment() -> Model:
    """The endpoint `ASSISTANT_MODEL` (`https://host/v1#name`), with the key `ASSISTANT_KEY`; without it, the rule."""
    url, _, name = os.environ.get("ASSISTANT_MODEL", "").partition("#")
    return endpoint(url, name, os.environ.get("ASSISTANT_KEY")) if url else quote


async def run(arguments: argparse.Namespace) -> None:
    async with opened(arguments.home, model_of_environment()) as assistant:
        if arguments.door == "chat":
            await chat(assistant, arguments.user)
            return
        tokens = json.loads(Path(arguments.users).read_text(encoding="utf-8"))
        await uvicorn.Server(uvicorn.Config(web(assistant, tokens), port=arguments.port)).serve()


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="assistant", description="An assistant of many users.")
    parser.add_argument("--home", default="assistant-memory", help="folder of the memory")
    doors = parser.add_subparsers(dest="door", required=True)
    doors.add_parser("chat", help="talk in the terminal").add_argument("user")
    serve = doors.add_parser("serve", help="answer over HTTP")
    serve.add_argument("users", help='JSON file with the token of each user: {"ann": "…"}')
    serve.add_argument("--port", type=int, default=8080)
    asyncio.run(run(parser.parse_args(words)))


if __name__ == "__main__":
    main()
