"""`recallog settings`: each setting, its value, and where it comes from."""

from pathlib import Path

import pytest

from recallog import Settings
from recallog.reactors.model_settings import endpoint_of
from recallog.settings import read_file
from recallog_schemas.errors import SettingsError
from support.cli import Result, recallog

SECRETS = {
    "RECALLOG_MODEL_API_KEY": "sk-hidden",
    "RECALLOG_JWT_KEY": "hidden-hidden-hidden-hidden-hidden",
    "RECALLOG_LEDGER": "kafka://me:hidden@host:9092/events?sasl_password=hidden",
    "RECALLOG_VIEWS": "redis://:hidden@host:6379/0",
}


def shown(result: Result) -> Result:
    assert (result.code, result.err) == (0, "")
    return result


def test_each_setting_has_its_value_and_its_source(tmp_path: Path) -> None:
    found = shown(recallog("settings", "--json", "--home", str(tmp_path), RECALLOG_SEAL="all")).json["settings"]
    assert [each["setting"] for each in found] == list(Settings.model_fields)
    by_name = {each["setting"]: each for each in found}
    assert by_name["home"] == {"setting": "home", "value": str(tmp_path), "source": "--home"}
    assert by_name["seal"] == {"setting": "seal", "value": "all", "source": "RECALLOG_SEAL"}
    assert by_name["reactor_at_once"]["source"] == "default"


def test_secrets_are_hidden() -> None:
    result = shown(recallog("settings", **SECRETS))
    assert "hidden" not in result.out
    assert "kafka://***@host:9092/events?sasl_password=***" in result.out


@pytest.mark.parametrize("password", ["hid@den", "hid/den", "hid?den", "hid#den", "@den", "hid://den"])
def test_a_password_that_is_not_percent_encoded_is_hidden_whole(password: str) -> None:
    result = shown(recallog("settings", "--changed", RECALLOG_VIEWS=f"redis://:{password}@host:6379/0"))
    assert "den" not in result.out
    assert "redis://***@host:6379/0" in result.out


def test_only_changed_settings_are_shown_on_request() -> None:
    found = shown(recallog("settings", "--changed", "--json", RECALLOG_SEAL="all", RECALLOG_INDEX="off")).json[
        "settings"
    ]
    assert {"seal", "index"} <= {each["setting"] for each in found}
    assert not any(each["source"] == "default" for each in found)


def test_a_variable_that_is_not_a_setting_is_named_with_the_one_that_was_meant() -> None:
    result = recallog("settings", RECALLOG_LEDGR="kafka://host:9092/events")
    assert result.code == 1
    assert "RECALLOG_LEDGR is not a setting; did you mean RECALLOG_LEDGER?" in result.err


def test_a_folder_that_the_environment_names_is_not_shown_as_an_option(tmp_path: Path) -> None:
    found = shown(recallog("settings", "--json", RECALLOG_HOME=str(tmp_path))).json["settings"]
    assert {"setting": "home", "value": str(tmp_path), "source": "RECALLOG_HOME"} in found


def test_a_setting_may_be_in_a_file_and_its_value_is_hidden_there_too(tmp_path: Path) -> None:
    for name, secret in SECRETS.items():
        (tmp_path / name).write_text(f"{secret}\n")
    files = {f"{name}_FILE": str(tmp_path / name) for name in SECRETS}
    result = shown(recallog("settings", "--json", "--changed", **files))
    assert "hidden" not in result.out
    sources = {each["source"] for each in result.json["settings"] if each["source"].endswith("_FILE")}
    assert sources == set(files)


@pytest.mark.parametrize("name", [*Settings.model_fields])
def test_each_setting_is_read_from_the_file_that_its_variable_names(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"RECALLOG_{name.upper()}"
    monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / "absent"))
    with pytest.raises(SettingsError, match=f"{variable}_FILE: .* cannot be read: No such file"):
        Settings.valid()
    monkeypatch.setenv(variable, "1")
    with pytest.raises(SettingsError, match=f"{variable} and {variable}_FILE are both set"):
        Settings.valid()


def test_a_file_is_read_without_the_line_break_at_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").write_text("http://host/v1#name\r\n")
    monkeypatch.setenv("RECALLOG_MODEL_FILE", str(tmp_path / "model"))
    assert Settings.valid().model == "http://host/v1#name"
    assert Settings.valid(model="http://other/v1#name").model == "http://other/v1#name"


def test_the_key_of_another_model_may_be_in_a_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("sk-other\n")
    monkeypatch.setenv("OTHER_KEY_FILE", str(tmp_path / "key"))
    assert read_file("OTHER_KEY") == "sk-other"
    endpoint_of(Settings.valid(), "https://host/v1?api_key_variable=OTHER_KEY#name")
    (tmp_path / "key").unlink()
    with pytest.raises(SettingsError, match="OTHER_KEY_FILE"):
        endpoint_of(Settings.valid(), "https://host/v1?api_key_variable=OTHER_KEY#name")
