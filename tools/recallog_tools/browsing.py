"""A Chromium of this machine and a server on a folder: what tests in a browser and screenshots share.

Playwright drives a browser that is installed; it does not download one.
"""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
MISSING = f"no browser is installed: tried {', '.join(PROGRAMS)}; Debian has chromium-headless-shell"
SECONDS = 60
"""How long a server may take to answer."""


def find_program() -> str | None:
    """The path of the first browser that is found."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def launch() -> Iterator["Browser"]:
    """The browser, without a window."""
    from playwright.sync_api import sync_playwright

    program = find_program()
    if program is None:
        raise SystemExit(MISSING)
    with sync_playwright() as playwright:
        # As root, which builds and containers often are, Chromium has no sandbox.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serve(home: Path, *options: str) -> Iterator[str]:
    """`recallog serve` of a folder as a process; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "recallog_service", "serve", "--home", str(home), "--port", str(port)]
    process = subprocess.Popen([*command, "--log-level", "warning", *options])
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(SECONDS)


def _wait_for(url: str, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
            return
        except urllib.error.URLError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
