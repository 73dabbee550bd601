"""Notices: a warning once per process and cause; the command line prints it to stderr."""

import logging

import pytest

from recallog_projections import notices
from recallog_service.cli.app import Warnings


def test_a_cause_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        notices.warn_once("storage", "a full disk", "no space left for a.db")
    notices.warn_once("storage", "another cause", "b.db is damaged")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [
        ("recallog.storage", "no space left for a.db"),
        ("recallog.storage", "b.db is damaged"),
    ]


def test_a_command_prints_warnings_to_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    Warnings().emit(logging.makeLogRecord({"msg": "%s", "args": ("a.db is \x1b[31mdamaged",)}))
    assert capsys.readouterr().err.startswith("warning: a.db is ")


def test_a_command_that_has_configured_logging_prints_no_warning_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert logging.getLogger().handlers
    Warnings().emit(logging.makeLogRecord({"msg": "a.db is damaged"}))
    assert capsys.readouterr().err == ""
