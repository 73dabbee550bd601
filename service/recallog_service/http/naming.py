"""The names by which requests address the server: the headers `Host` and `Origin` (RFC 3986, RFC 6454).

A browser sends them, and pages cannot change them. So they distinguish pages of this server from pages of other sites,
even if the name of another site resolves to this machine (DNS rebinding).
"""

import re
from collections.abc import Collection, Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from recallog_service.http.problems import RequestError

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names under which a server without keys answers."""

_NAME_CHARS_MAX = 253
_PORT_MAX = 65_535
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_AUTHORITY = re.compile(
    rf"(?P<name>{_LABEL}(?:\.{_LABEL})*\.?|\[(?P<address>[0-9A-Fa-f:.]+)\])(?::(?P<port>[0-9]{{1,5}}))?"
)
_ENDS_WITH_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
"""A name that browsers read as an IPv4 address, including forms such as `127.1` and `0x7f000001`."""
_ORIGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>.*)")
_OPAQUE = "null"
_PORTS = {"http": 80, "https": 443}


class Authority(NamedTuple):
    """A name or an address, without brackets and in lower case, and a port."""

    name: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> "Authority | None":
        """`example.org`, `127.0.0.1:8765` or `[::1]:8765`; None for any other text, such as one with a user."""
        found = _AUTHORITY.fullmatch(text)
        if found is None or len(found["name"]) > _NAME_CHARS_MAX:
            return None
        port = None if found["port"] is None else int(found["port"])
        if port is not None and not 0 < port <= _PORT_MAX:
            return None
        try:
            if found["address"] is not None:
                return cls(str(IPv6Address(found["address"])), port)
            if _ENDS_WITH_NUMBER.fullmatch(found["name"]):
                return cls(str(IPv4Address(found["name"])), port)
        except ValueError:
            return None
        return cls(found["name"].lower(), port)


class Names(NamedTuple):
    """The name of the server in a request, and the origin of the page that sent it."""

    host: Authority | None
    """The name of the server; None if the request has none, as HTTP/1.0 allows."""
    has_origin: bool
    """Whether a page in a browser sent it, not a program."""
    scheme: str
    origin: Authority | None
    """The origin of the page; None if there is none, or if it is opaque (`null`)."""

    @classmethod
    def of(cls, headers: Sequence[tuple[bytes, bytes]]) -> "Names":
        """The names in the headers of a request. Raises `RequestError` for headers that no browser and no well-behaved
        program sends."""
        host, origin = _only(headers, b"host"), _only(headers, b"origin")
        named = None if host is None else Authority.parse(host)
        if host is not None and named is None:
            raise RequestError(400, "Host: should be a name or an address, with a port or without one", rule="host")
        if origin is None or origin == _OPAQUE:
            return cls(named, origin is not None, "", None)
        parts = _ORIGIN.fullmatch(origin)
        page = None if parts is None else Authority.parse(parts["authority"])
        if parts is None or page is None:
            message = "Origin: should be one origin, such as http://127.0.0.1:8765, or null"
            raise RequestError(400, message, rule="origin")
        return cls(named, True, parts["scheme"].lower(), page)

    def check_answers(self, names: Collection[str]) -> None:
        """Raise `RequestError` unless the request, and the page that sent it, use one of the `names` of this
        machine."""
        if self.host is None or self.host.name not in names:
            message = (
                "a server that was started without keys answers only under the names of this machine, such as "
                "127.0.0.1; make a key (recallog keys create), and start it again"
            )
            raise RequestError(421, message, rule="host")
        if self.has_origin and (self.origin is None or self.origin.name not in names):
            raise _foreign("a server that was started without keys answers only pages of this machine")

    def check_same_origin(self) -> None:
        """Raise `RequestError` if a page of another origin sent the request. `Host` names the server's origin."""
        if self.has_origin and not self._is_same_origin:
            raise _foreign("this path answers programs, and pages of the server's own origin; see docs/mcp.md")

    @property
    def _is_same_origin(self) -> bool:
        """Whether the page belongs to this server. A proxy may have terminated TLS, so the default port of either
        scheme is accepted."""
        if self.origin is None or self.host is None or self.scheme not in _PORTS:
            return False
        usual = _PORTS[self.scheme]
        return self.origin.name == self.host.name and (self.origin.port or usual) == (self.host.port or usual)


def _foreign(message: str) -> RequestError:
    return RequestError(403, f"Origin: {message}", rule="origin")


def _only(headers: Sequence[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The value of a header; None if there is none. Raises `RequestError` if there are several."""
    found = [value.decode("latin-1") for each, value in headers if each == name]
    if len(found) > 1:
        message = f"{name.decode().capitalize()}: occurs {len(found)} times; send it once"
        raise RequestError(400, message, rule=name.decode())
    return found[0] if found else None
