"""Keys, tokens and rate limits: who a caller is, and when it is refused."""

import json
import re
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from recallog import OutOfRange, RateLimited, Settings, SettingsError, StorageCorrupt, Unauthorized
from recallog_service.access import Access, Grant, Verb, keys
from recallog_service.access.key_file import KeyFile
from recallog_service.access.keys import Key, KeyStore
from recallog_service.access.rates import RateLimits
from support.cli import environment_of, recallog
from support.events import run

GRANT = Grant(spaces=("acme/*",), agent="anna", verbs=frozenset({Verb.READ}))
SECRET = "a secret of at least thirty-two bytes"


async def made(store: KeyStore, **more: Any) -> str:
    text, key = keys.make("test", GRANT, **more)
    await store.put(key)
    return text


def caller_of(access: Access, token: str | None) -> tuple[str, Grant]:
    found = run(access.caller(token))
    return found.name, found.grant


def is_refused(access: Access, token: str | None) -> bool:
    try:
        run(access.caller(token))
    except Unauthorized:
        return True
    return False


# Keys.


def test_a_key_says_who_calls_and_only_a_hash_of_it_is_stored(tmp_path: Path) -> None:
    text = run(made(KeyFile(tmp_path)))
    _, id_, secret = text.split("_", 2)
    assert text.startswith("rl_")
    assert len(secret) >= 43
    assert caller_of(Access(KeyFile(tmp_path)), text) == (f"key:{id_}", GRANT)
    stored = (tmp_path / "keys.json").read_text()
    assert id_ in stored
    assert secret not in stored


def test_the_file_of_keys_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    run(made(KeyFile(tmp_path)))
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} <= {"keys.json", "keys.lock"}


@pytest.mark.parametrize("change", [lambda text: text[:-1], lambda text: text + "x", lambda text: text.upper()])
def test_a_key_that_is_not_exact_is_refused(tmp_path: Path, change: Any) -> None:
    text = run(made(KeyFile(tmp_path)))
    assert is_refused(Access(KeyFile(tmp_path)), change(text))


def test_the_secret_of_another_key_is_refused(tmp_path: Path) -> None:
    first, second = run(made(KeyFile(tmp_path))), run(made(KeyFile(tmp_path)))
    mixed = f"{first.rpartition('_')[0].split('_', 2)[0]}_{first.split('_', 2)[1]}_{second.split('_', 2)[2]}"
    assert is_refused(Access(KeyFile(tmp_path)), mixed)


@given(st.text())
def test_no_text_is_a_key_by_accident(text: str) -> None:
    class One(KeyStore):
        key = keys.make("test", GRANT)[1]

        async def get(self, id_: str) -> Key | None:
            return self.key

        async def all(self) -> list[Key]:
            return [self.key]

        async def put(self, key: Key) -> None: ...
        async def close(self) -> None: ...

    for token in (text, f"rl_{text}", f"rl_{One.key.id}_{text}"):
        assert is_refused(Access(One()), token)


def test_a_revoked_key_is_refused_at_once_by_a_server_that_runs(tmp_path: Path) -> None:
    text = run(made(KeyFile(tmp_path)))
    running = Access(KeyFile(tmp_path))
    assert not is_refused(running, text)
    run(KeyFile(tmp_path).revoke(text.split("_")[1]))
    assert is_refused(running, text)


def test_an_expired_key_is_refused(tmp_path: Path) -> None:
    text = run(made(KeyFile(tmp_path), expires=datetime.now(UTC) - timedelta(seconds=1)))
    assert is_refused(Access(KeyFile(tmp_path)), text)
    text = run(made(KeyFile(tmp_path), expires=datetime.now(UTC) + timedelta(minutes=1)))
    assert not is_refused(Access(KeyFile(tmp_path)), text)


def test_a_damaged_file_of_keys_lets_nobody_in(tmp_path: Path) -> None:
    text = run(made(KeyFile(tmp_path)))
    (tmp_path / "keys.json").write_text('[{"id": ')
    with pytest.raises(StorageCorrupt):
        run(Access(KeyFile(tmp_path)).caller(text))
    with pytest.raises(StorageCorrupt):
        run(Access(KeyFile(tmp_path)).is_open())


# Without keys.


def test_without_any_key_everybody_may_do_everything(tmp_path: Path) -> None:
    access = Access(KeyFile(tmp_path))
    assert run(access.is_open())
    assert caller_of(access, None) == ("keyless", Grant.everything())


def test_the_first_key_closes_the_door_and_revoking_or_losing_it_does_not_open_it(tmp_path: Path) -> None:
    access = Access(KeyFile(tmp_path))
    assert not is_refused(access, None)
    text = run(made(KeyFile(tmp_path)))
    assert is_refused(access, None)
    assert is_refused(access, "")
    run(KeyFile(tmp_path).revoke(text.split("_")[1]))
    assert not run(Access(KeyFile(tmp_path)).is_open())
    (tmp_path / "keys.json").unlink()
    assert is_refused(access, None)


# Tokens.


CLAIM = {"spaces": ["acme/*"], "agent": "anna", "verbs": ["read"]}


def settings(tmp_path: Path, **more: Any) -> Settings:
    return Settings.valid(**{"home": tmp_path, "jwt_key": SECRET, **more})


def token(key: Any = SECRET, algorithm: str = "HS256", **claims: Any) -> str:
    given = {"sub": "anna@acme", "exp": time.time() + 60, "recallog": CLAIM} | claims
    return jwt.encode({name: value for name, value in given.items() if value is not None}, key, algorithm=algorithm)


def test_a_token_says_who_calls_and_what_it_may_do(tmp_path: Path) -> None:
    access = Access.of(settings(tmp_path))
    assert not run(access.is_open())
    assert caller_of(access, token()) == ("jwt:anna@acme", GRANT)
    assert is_refused(access, None)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 1},
        {"exp": None},
        {"sub": None},
        {"nbf": 99_999_999_999},
        {"recallog": None},
        {"recallog": {"spaces": ["acme/*"], "verbs": ["read"]}},
        {"recallog": CLAIM | {"verbs": ["rule"]}},
        {"recallog": json.dumps(CLAIM)},
        {"aud": "another"},
    ],
    ids=repr,
)
def test_a_token_that_is_expired_or_has_no_grant_is_refused(tmp_path: Path, claims: dict[str, Any]) -> None:
    assert is_refused(Access.of(settings(tmp_path)), token(**claims))


def test_a_token_of_another_key_or_algorithm_is_refused(tmp_path: Path) -> None:
    access = Access.of(settings(tmp_path))
    assert is_refused(access, token(SECRET[::-1]))
    assert is_refused(access, token(SECRET * 2, "HS512"))
    assert is_refused(access, jwt.encode({"sub": "a", "exp": time.time() + 60, "recallog": CLAIM}, "", "none"))


def test_audience_and_issuer_are_checked_where_settings_name_them(tmp_path: Path) -> None:
    access = Access.of(settings(tmp_path, jwt_audience="recallog", jwt_issuer="https://id.acme"))
    assert not is_refused(access, token(aud="recallog", iss="https://id.acme"))
    assert is_refused(access, token(aud="recallog", iss="https://id.rival"))
    assert is_refused(access, token(aud="shop", iss="https://id.acme"))
    assert is_refused(access, token())


def test_a_public_key_checks_tokens_and_a_secret_made_of_it_does_not(tmp_path: Path) -> None:
    private = Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    access = Access.of(settings(tmp_path, jwt_key=public.decode(), jwt_algorithm="EdDSA"))
    assert not is_refused(access, token(private, "EdDSA"))
    assert is_refused(access, token(Ed25519PrivateKey.generate(), "EdDSA"))
    assert is_refused(access, token("x" * 64))


@pytest.mark.parametrize(
    "wrong", [{"jwt_key": "short"}, {"jwt_algorithm": "EdDSA"}, {"jwt_algorithm": "HS512"}, {"jwt_algorithm": "none"}]
)
def test_a_key_that_cannot_check_tokens_is_a_settings_error(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="RECALLOG_JWT") as caught:
        Access.of(settings(tmp_path, **wrong))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("alone", [{"jwt_audience": "recallog"}, {"jwt_issuer": "https://id.acme"}])
def test_settings_of_tokens_without_a_key_that_checks_them_are_refused(tmp_path: Path, alone: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="RECALLOG_JWT_KEY"):
        Access.of(Settings.valid(home=tmp_path, **alone))


# Rate limits.


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_61st_call_within_a_minute_is_refused_and_says_when_to_come_back() -> None:
    clock = Clock()
    limits = RateLimits(clock)
    for _ in range(60):
        limits.take("key:a", "read", calls_per_minute=60)
        clock.now += 0.5
    with pytest.raises(RateLimited) as caught:
        limits.take("key:a", "read", calls_per_minute=60)
    assert caught.value.retry_after_seconds == pytest.approx(30.0)
    limits.take("key:a", "stats", calls_per_minute=30)
    limits.take("key:b", "read", calls_per_minute=60)
    clock.now += caught.value.retry_after_seconds
    limits.take("key:a", "read", calls_per_minute=60)


@given(st.lists(st.floats(0, 90), max_size=200), st.integers(1, 60))
def test_no_minute_has_more_calls_than_a_full_bucket(pauses: list[float], per_minute: int) -> None:
    clock, accepted = Clock(), list[float]()
    limits = RateLimits(clock)
    for pause in pauses:
        clock.now += pause
        try:
            limits.take("a", "", calls_per_minute=per_minute)
        except RateLimited:
            continue
        accepted.append(clock.now)
    for begin in accepted:
        assert sum(begin <= at < begin + 60 for at in accepted) <= per_minute


def test_the_bucket_of_a_caller_is_small_however_many_calls_it_has() -> None:
    clock = Clock()
    limits = RateLimits(clock)
    for _ in range(20_000):
        clock.now += 0.01
        limits.take("key:a", "", calls_per_minute=100_000)
    (bucket,) = limits._buckets.values()
    assert len(bucket.calls) <= 1201
    assert 5_990 <= bucket.total <= 6_010


def test_memory_is_bounded_however_many_callers_there_are() -> None:
    limits = RateLimits(Clock())
    for n in range(20_000):
        limits.take(f"jwt:{n}", "", calls_per_minute=1)
    assert len(limits._buckets) <= 10_000


def test_the_limit_of_a_key_counts_all_its_calls(tmp_path: Path) -> None:
    text = run(made(KeyFile(tmp_path), calls_per_minute=2))
    access = Access(KeyFile(tmp_path))
    run(access.caller(text))
    run(access.caller(text))
    with pytest.raises(RateLimited):
        run(access.caller(text))


# Commands.


def test_a_key_is_created_listed_and_revoked(tmp_path: Path) -> None:
    create = ["keys", "create", "shop bot", "--space", "acme/*", "--agent", "anna", "--verb", "read"]
    created = recallog(*create, "--home", tmp_path)
    text = created.out.strip()
    assert created.code == 0
    assert "the key is shown this once" in created.err
    assert caller_of(Access(KeyFile(tmp_path)), text)[1] == GRANT
    id_ = text.split("_")[1]
    listed = recallog("keys", "list", "--home", tmp_path)
    titles, row = (re.split(" {2,}", line.strip()) for line in listed.out.splitlines())
    assert titles == ["id", "name", "spaces", "agent", "verbs", "calls per minute", "state"]
    assert row == [id_, "shop bot", "acme/*", "anna", "read", "any", "valid"]
    assert text not in recallog("keys", "list", "--home", tmp_path, "--json").out
    assert recallog("keys", "revoke", id_, "--home", tmp_path).code == 0
    assert "revoked" in recallog("keys", "list", "--home", tmp_path).out
    assert is_refused(Access(KeyFile(tmp_path)), text)


def test_a_key_for_an_operator_has_the_verbs_that_are_named(tmp_path: Path) -> None:
    words = ["--space", "*", "--agent", "*", "--verb", "operate", "--verb", "tail", "--days", "7", "--json"]
    created = recallog("keys", "create", "ops", *words, "--home", tmp_path).json
    assert created["grant"] == {"spaces": ["*"], "agent": "*", "verbs": created["grant"]["verbs"]}
    assert created["grant"]["verbs"] == ["tail", "operate"]
    assert "sha256" not in created
    assert datetime.fromisoformat(created["expires"]) > datetime.now(UTC) + timedelta(days=6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["create", "x", "--space", "acme*", "--agent", "anna"], "--space: 'acme*' is not a name: it has a *"),
        (["create", "x", "--space", "acme/*", "--agent", "a "], "--agent: 'a ' is not a name: it begins"),
        (["create", " ", "--space", "acme/*", "--agent", "anna"], "name: should say what the key is for"),
        (["revoke", "none"], "there is no key 'none'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, words: list[str], says: str) -> None:
    done = recallog("keys", *words, "--home", tmp_path)
    assert done.code == 2
    assert says in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("redis.asyncio", ["keys", "list"]),
        ("redis.asyncio", ["serve"]),
        ("aiokafka", ["spaces"]),
        ("faust", ["worker"]),
    ],
)
def test_without_the_packages_of_a_cluster_one_line_says_how_to_install_them(
    tmp_path: Path, package: str, words: list[str]
) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from recallog_service.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env=environment_of(
            RECALLOG_LEDGER="kafka://127.0.0.1:1/a", RECALLOG_VIEWS="redis://127.0.0.1:1", RECALLOG_HOME=str(tmp_path)
        ),
    )
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    is_logged = words in (["serve"], ["worker"])
    told = json.loads(line)["message"] if is_logged else line.removeprefix("error ")
    assert (
        told == f"{package.split('.')[0]} is not installed. Install it: pip install '.[cluster]' in a clone of Recallog"
    )


def test_without_keys_the_list_says_what_that_means(tmp_path: Path) -> None:
    listed = recallog("keys", "list", "--home", tmp_path)
    assert (listed.code, listed.out) == (0, "(nothing)\n")
    assert "listens on this machine only" in listed.err


def test_an_expired_key_is_listed_as_such() -> None:
    _, key = keys.make("old", GRANT, expires=datetime.now(UTC) - timedelta(days=1))
    assert "  expired 2" in key.format()


def test_no_key_has_the_id_that_is_revoked(tmp_path: Path) -> None:
    with pytest.raises(OutOfRange):
        run(KeyFile(tmp_path).revoke("none"))


# The configuration of a client.


@pytest.mark.parametrize(
    ("words", "says"),
    [([], "--space: is required"), (["--space", "a ", "--agent", "x"], "--space: 'a ' is not a name")],
)
def test_mcp_needs_a_space_and_an_agent(tmp_path: Path, words: list[str], says: str) -> None:
    done = recallog("mcp", *words, "--home", tmp_path)
    assert done.code == 2
    assert says in done.err
