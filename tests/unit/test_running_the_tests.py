"""Running the tests from a clone alone: tests on real data are skipped, and the summary counts them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
REAL = "tests/unit/test_formats_locomo.py::test_all_sessions_and_turns_are_read_without_an_error"


def pytest_with(data: str | None, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run a test that reads real data, as CI does, with `RECALLOG_TEST_DATA` set to `data`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("RECALLOG_", "PYTEST_"))}
    environment |= {"CI": "true", "COLUMNS": "200"} | ({} if data is None else {"RECALLOG_TEST_DATA": data})
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, REAL]
    return subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["in one process", "in parallel"])
def test_without_real_data_its_tests_are_skipped_and_one_line_says_how_many(options: tuple[str, ...]) -> None:
    done = pytest_with(None, *options)
    assert (done.returncode, done.stdout.count("1 skipped")) == (0, 1), done.stdout
    assert "1 test on real data skipped: RECALLOG_TEST_DATA is not set" in done.stdout.splitlines()


def test_a_folder_of_real_data_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    done = pytest_with(str(tmp_path / "nowhere"))
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "RECALLOG_TEST_DATA names a folder that does not exist" in done.stderr


def test_a_file_that_the_folder_of_real_data_lacks_fails_the_test_that_reads_it(tmp_path: Path) -> None:
    done = pytest_with(str(tmp_path))
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "has no file locomo-tuning.json" in done.stdout


def test_nothing_names_a_folder_beside_the_repository() -> None:
    """Except the script of CI, which passes such a folder on in a variable."""
    files = [path for path in REPOSITORY.iterdir() if path.is_file()]
    for folder in ("tests", "docs", "deploy", "benchmarks", "service"):
        files += [path for path in (REPOSITORY / folder).rglob("*") if path.suffix in {".py", ".md", ".yml", ".toml"}]
    beside = "../" + "shared"
    assert [path for path in files if beside in path.read_text(errors="replace")] == []
