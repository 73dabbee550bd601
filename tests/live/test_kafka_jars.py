"""The jars of the local Kafka: fetched once, completely or not at all; errors name what is missing."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deploy.local import NotInstalled
from deploy.local.kafka.jars import kafka_jars

REPOSITORY = Path(__file__).parents[2]
SECONDS = 60


def test_a_second_start_reuses_the_jars_without_maven(jars: Path, tmp_path: Path) -> None:
    program = "from deploy.local.kafka.jars import kafka_jars; print(kafka_jars())"
    done = python(program, path=tmp_path, cache=jars.parents[1])
    assert done.stdout.strip() == str(jars)
    assert done.stderr == ""


def test_a_failed_fetch_is_repeated_and_leaves_nothing_behind(tmp_path: Path) -> None:
    maven(tmp_path, "echo no route >&2; exit 1")
    done = python("from deploy.local.kafka.jars import kafka_jars; kafka_jars()", path=tmp_path)
    assert done.stderr.count("Fetching Apache Kafka") == 3
    assert "Maven could not fetch Kafka" in done.stderr
    assert done.stderr.endswith("no route\n")
    assert list((tmp_path / "recallog").iterdir()) == []


def test_processes_that_fetch_at_once_end_with_the_same_jars(tmp_path: Path) -> None:
    maven(
        tmp_path,
        'for option; do target="${option#-DoutputDirectory=}"; done; /bin/mkdir "$target"; : > "$target/a.jar"',
    )
    program = "from deploy.local.kafka.jars import kafka_jars; print(kafka_jars())"
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: python(program, path=tmp_path), range(4)))
    [jars] = (tmp_path / "recallog").iterdir()
    assert [one.stdout.strip() for one in done] == [str(jars)] * 4
    assert [jar.name for jar in jars.iterdir()] == ["a.jar"]


def test_without_java_the_error_says_what_to_install_or_to_set(tmp_path: Path) -> None:
    done = python("import sys; from deploy.local import LocalKafka; LocalKafka(sys.argv[1]).start()", path=tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert "NotInstalled: the local Kafka needs Java 17 or newer, and there is none: install Java 17+ and Maven" in last
    assert "or set RECALLOG_TEST_KAFKA" in last


@pytest.fixture
def jars() -> Path:
    try:
        return kafka_jars()
    except NotInstalled as missing:
        pytest.skip(str(missing))


def python(program: str, *, path: Path, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program that finds no other programs than those in the folder `path`."""
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-c", program, str(path)],
        cwd=REPOSITORY,
        env=environment | {"PATH": str(path), "XDG_CACHE_HOME": str(cache or path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def maven(folder: Path, script: str) -> None:
    program = folder / "mvn"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
