"""The models that the assistant can use: each takes the messages of a chat and returns the answer.

Any other callable of the same form can be passed to `Assistant` instead.
"""

import re
from collections.abc import Awaitable, Callable, Sequence

import httpx

Message = dict[str, str]
Model = Callable[[Sequence[Message]], Awaitable[str]]
_LINE = re.compile(r"\s*(?:- |\[[^\]]*\])+\s*(.+)")
"""A line of the prompt about the past, not a heading."""
_OWN = ('You told me: "', "I will remember that.")
_WORD_CHARS_LEAST = 4
_SECONDS_MAX = 60


async def quote(messages: Sequence[Message]) -> str:
    """A rule instead of a model: quotes the line of the prompt, or the earlier statement of the user, that shares most
    words with the question.

    It needs no key, and tests can rely on it.
    """
    prompt, question = messages[0]["content"], messages[-1]["content"]
    lines = [match[1] for line in prompt.splitlines() if (match := _LINE.fullmatch(line))]
    lines += (message["content"] for message in messages[1:-1] if message["role"] == "user")
    statements = (line for line in lines if not line.endswith("?") and not line.startswith(_OWN))
    best = max(statements, key=lambda line: len(_words_of(line) & _words_of(question)), default="")
    return f'{_OWN[0]}{best}"' if _words_of(best) & _words_of(question) else _OWN[1]


def _words_of(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= _WORD_CHARS_LEAST}


def endpoint(url: str, model: str, key: str | None = None) -> Model:
    """A model of an OpenAI-compatible endpoint, such as `https://host/v1`. Raises `httpx.HTTPError` if it fails."""

    async def complete(messages: Sequence[Message]) -> str:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with httpx.AsyncClient(timeout=_SECONDS_MAX, headers=headers) as client:
            body = {"model": model, "messages": list(messages)}
            answer = await client.post(f"{url.rstrip('/')}/chat/completions", json=body)
            answer.raise_for_status()
            try:
                return str(answer.json()["choices"][0]["message"]["content"])
            except (ValueError, LookupError, TypeError) as error:
                raise httpx.DecodingError(f"{url} did not answer as a chat completion: {error!r}") from error

    return complete
