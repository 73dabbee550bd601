"""The jars of Apache Kafka: fetched once by Maven into the user's cache folder."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from deploy.local.server import LocalServerError, NotInstalled

OLDEST_JAVA = 17

_POM = Path(__file__).with_name("pom.xml")
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
_FETCH_ATTEMPTS = 3
_FETCH_SECONDS = 600
_INSTEAD = "or set RECALLOG_TEST_KAFKA to the bootstrap servers of a running Kafka"


def java() -> Path:
    """The java program from JAVA_HOME, else from PATH.

    Raises:
        NotInstalled: there is none, or it is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise NotInstalled(f"the local Kafka needs Java {OLDEST_JAVA} or newer, and there is none: {_install()}")
    if (version := _java_version(found)) < OLDEST_JAVA:
        raise NotInstalled(f"the local Kafka needs Java {OLDEST_JAVA} or newer; {found} is {version}: {_install()}")
    return Path(found)


def kafka_jars(report: Callable[[str], None] | None = None) -> Path:
    """The folder with the jars; fetches them (44 MB, about 20 s) if the cache does not have this version yet.

    Any number of processes may call this at once: each fetches into its own folder, and the first to finish is used.

    Args:
        report: called with lines of progress; by default they are printed on stderr.

    Raises:
        NotInstalled: Maven is needed and missing.
        LocalServerError: three fetches failed; the text contains the end of Maven's output.
    """
    report = report or _print
    pom = _POM.read_bytes()
    version = kafka_version()
    # The digest of the pom is part of the name, so that a changed version of any library gives a new folder.
    jars = _cache_folder() / f"kafka-{version}-{hashlib.sha256(pom).hexdigest()[:8]}"
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        raise NotInstalled(f"the jars of Kafka {version} are fetched with Maven, and there is none: {_install()}")
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=jars.parent, prefix=f"{jars.name}.fetching-") as folder:
        # Renamed when complete: an interrupted fetch is never mistaken for the jars.
        complete = _fetch(maven, Path(folder), version, report)
        try:
            complete.rename(jars)
        except OSError:
            if not jars.is_dir():  # another process was first
                raise
    return jars


def kafka_version() -> str:
    """The pinned version of Apache Kafka, e.g. 4.3.1."""
    found = re.search(r"<kafka\.version>(.+)</kafka\.version>", _POM.read_text(encoding="utf-8"))
    if found is None:
        raise LocalServerError(f"{_POM} pins no kafka.version")
    return found[1]


def _fetch(maven: str, folder: Path, version: str, report: Callable[[str], None]) -> Path:
    output = ""
    for attempt in range(1, _FETCH_ATTEMPTS + 1):
        report(f"Fetching Apache Kafka {version} with Maven, once (44 MB), attempt {attempt} of {_FETCH_ATTEMPTS} …")
        target = folder / f"jars-{attempt}"
        began = time.monotonic()
        command = [maven, "-q", "-B", "-f", str(_POM), _GOAL, "-DincludeScope=runtime", f"-DoutputDirectory={target}"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_FETCH_SECONDS,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            output = f"not finished after {_FETCH_SECONDS} s"
            continue
        if done.returncode == 0:
            report(f"Fetched {len(list(target.glob('*.jar')))} jars in {time.monotonic() - began:.0f} s.")
            return target
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
    raise LocalServerError(
        f"Maven could not fetch Kafka {version} in {_FETCH_ATTEMPTS} attempts; check the network and Maven's "
        f"settings, {_INSTEAD}. The end of its output:\n{output}"
    )


def _cache_folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")  # relative paths are ignored (XDG Base Directory)
    return (Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache") / "recallog"


def _install() -> str:
    return (
        f"install Java {OLDEST_JAVA}+ and Maven (Debian, Ubuntu: apt install openjdk-{OLDEST_JAVA}-jre-headless maven; "
        f"macOS: brew install openjdk maven), {_INSTEAD}"
    )


@cache
def _java_version(program: str) -> int:
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
