"""The frames of event streams (`text/event-stream`), as a client reads them."""

from collections.abc import AsyncGenerator, AsyncIterable
from typing import NamedTuple

MEDIA_TYPE = "text/event-stream"


class Frame(NamedTuple):
    """One event of a stream."""

    event: str
    last_id: str
    """The id; "" if it has none."""
    data: bytes


async def parse_frames(chunks: AsyncIterable[bytes]) -> AsyncGenerator[Frame]:
    """The frames in the bytes of a stream. An incomplete frame at the end is left out.

    Lines end with a line feed, as the server ends them; JSON texts may have any other separator of lines.
    """
    rest, event, last_id = b"", "", ""
    data: list[bytes] = []
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            match name:
                case b"data":
                    data.append(value)
                case b"event":
                    event = value.decode(errors="replace")
                case b"id":
                    last_id = value.decode(errors="replace")
                case b"" if not value and data:
                    yield Frame(event, last_id, b"\n".join(data))
                    event, last_id, data = "", "", []
