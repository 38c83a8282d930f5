"""Settings: file, environment, where each came from, and mistakes that are named."""

from pathlib import Path

import pytest
from pydantic import SecretStr

from aftercall.config import list_settings, load_config
from aftercall.errors import ConfigError
from aftercall.settings import Settings


def write(folder: Path, text: str) -> Path:
    file = folder / "aftercall.toml"
    file.write_text(text)
    return file


def test_defaults_need_nothing() -> None:
    loaded = load_config(environ={})
    assert loaded.settings.reconnect_window_s == 300
    assert (
        loaded.settings.database_url
        == f"sqlite:///{Path('~/.aftercall').expanduser()}/aftercall.db"
    )
    assert {value.origin for value in loaded.values} == {"default"}
    assert loaded.warnings == ()


def test_the_environment_goes_before_the_file_and_each_value_names_its_origin(
    tmp_path: Path,
) -> None:
    file = write(
        tmp_path,
        'timezone = "Europe/Berlin"\nagent_id = "desk"\n[calls]\nmax_entries = 7\n',
    )
    loaded = load_config(
        file, {"AFTERCALL_TIMEZONE": "Asia/Tokyo", "DEEPGRAM_API_KEY": "dg-secret"}
    )
    origins = {value.key: value.origin for value in loaded.values}
    assert (
        loaded.settings.timezone,
        loaded.settings.agent_id,
        loaded.settings.calls.max_entries,
    ) == ("Asia/Tokyo", "desk", 7)
    assert (origins["timezone"], origins["agent_id"], origins["deepgram.api_key"]) == (
        "AFTERCALL_TIMEZONE",
        str(file),
        "DEEPGRAM_API_KEY",
    )


def test_a_file_in_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 'agent_id = "desk"\n')
    monkeypatch.chdir(tmp_path)
    assert load_config(environ={}).settings.agent_id == "desk"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timezon = 'UTC'", "unknown setting 'timezon'; did you mean 'timezone'?"),
        (
            "[calls]\nmax_entrys = 3",
            "unknown setting 'calls.max_entrys'; did you mean 'calls.max_entries'?",
        ),
        ("calls = 3", "calls is a section"),
        (
            "reconnect_window_s = -1",
            "reconnect_window_s input should be greater than or equal to 0",
        ),
        ("engine = 'robot'", "engine input should be"),
        ("model = 'gpt'", "model string should match"),
        ("a = [", "is not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        load_config(write(tmp_path, text), {})
    assert said in str(wrong.value)
    assert str(tmp_path) in str(wrong.value)


def test_a_wrong_value_in_the_environment_names_the_variable() -> None:
    with pytest.raises(
        ConfigError, match=r"AFTERCALL_CALLS_MAX_ENTRIES: calls\.max_entries"
    ):
        load_config(environ={"AFTERCALL_CALLS_MAX_ENTRIES": "many"})


def test_a_missing_or_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        load_config(tmp_path / "none.toml", {})
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not valid UTF-8"):
        load_config(tmp_path / "bad.toml", {})


def test_secrets_are_never_shown() -> None:
    environ = {
        "OPENAI_API_KEY": "sk-canary",
        "AFTERCALL_DATABASE_URL": "postgresql+psycopg://me:canary@db/x",
    }
    loaded = load_config(environ=environ)
    assert "canary" not in " ".join(value.shown for value in loaded.values)
    assert "sk-canary" not in repr(loaded)


def test_an_unknown_zone_falls_back_to_utc_with_one_warning() -> None:
    loaded = load_config(environ={"AFTERCALL_TIMEZONE": "Mars/Olympus"})
    assert loaded.settings.zone.key == "UTC"
    assert [
        warning for warning in loaded.warnings if "Mars/Olympus" in warning
    ] == list(loaded.warnings)


def test_who_speaks_goes_by_the_keys_unless_it_is_said() -> None:
    def speaks(**environ: str) -> str:
        return load_config(environ=environ).settings.voice_engine

    assert speaks() == "receptionist"
    assert speaks(OPENAI_API_KEY="x") == "openai"
    assert speaks(OPENAI_API_KEY="x", DEEPGRAM_API_KEY="x") == "deepgram"
    assert (
        speaks(DEEPGRAM_API_KEY="x", AFTERCALL_ENGINE="receptionist") == "receptionist"
    )


def test_a_misspelt_variable_is_warned_about() -> None:
    assert load_config(environ={"AFTERCALL_HOEM": "x"}).warnings == (
        "AFTERCALL_HOEM: no such setting; did you mean 'AFTERCALL_HOME'?",
    )
    of_an_agent = {"AFTERCALL_URL": "http://x", "AFTERCALL_SPOOL": "x"}
    assert load_config(environ=of_an_agent).warnings == ()


def test_settings_are_frozen_and_every_one_is_described() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().agent_id = "x"
    assert all(field.description for _, _, field in list_settings())


def test_environment_names_are_unique() -> None:
    names = [env for _, env, _ in list_settings()]
    assert len(names) == len(set(names))


def test_groups_of_agents_are_read_from_file_and_environment(tmp_path: Path) -> None:
    file = write(tmp_path, '[memory]\nagents = [["main", "sales"], ["clinic"]]\n')
    for loaded in (
        load_config(file, {}),
        load_config(environ={"AFTERCALL_MEMORY_AGENTS": "main, sales; clinic"}),
    ):
        memory = loaded.settings.memory
        assert memory.agents == (("main", "sales"), ("clinic",))
        others = [
            memory.list_others_in_group(agent_id)
            for agent_id in ("main", "sales", "clinic", "stranger")
        ]
        assert others == [("sales",), ("main",), (), ()]
    with pytest.raises(ConfigError, match="'main' is named twice"):
        load_config(environ={"AFTERCALL_MEMORY_AGENTS": "main,sales;main"})


@pytest.mark.parametrize("passcode", ["----", "* * *", "___ ___", "one two", "a-1-b"])
def test_a_passcode_with_too_little_to_say_is_refused(passcode: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        load_config(environ={"AFTERCALL_WORK_PASSCODE": passcode})
    assert "work.passcode needs at least 4 letters or digits" in str(wrong.value)
    assert passcode not in str(wrong.value)


@pytest.mark.parametrize("passcode", ["4711", "four seven one one", "blue harvest"])
def test_a_passcode_of_words_or_digits_is_taken(passcode: str) -> None:
    loaded = load_config(environ={"AFTERCALL_WORK_PASSCODE": passcode})
    assert loaded.settings.work.passcode == SecretStr(passcode)


@pytest.mark.parametrize(
    ("env", "weak", "strong"),
    [
        ("AFTERCALL_API_TOKEN", "s3cret", "s3cret-token"),
        ("AFTERCALL_API_TOKEN", "a" * 40, "a1b2c3d4e5f6"),
        ("AFTERCALL_SECRET_KEY", "fifteen letters", "sixteen letters!"),
        ("ELEVENLABS_START_SECRET", "123456", "start-me-briefed"),
        ("VAPI_WEBHOOK_SECRET", "hunter2", "vapi-posts-here"),
    ],
)
def test_a_token_or_key_that_can_be_guessed_is_refused(
    env: str, weak: str, strong: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{env}: .* is too easy to guess") as wrong:
        load_config(environ={env: weak})
    assert weak not in str(wrong.value)
    assert load_config(environ={env: strong}).warnings == ()


def test_the_address_of_a_webhook_is_shown_without_what_opens_it() -> None:
    environ = {
        "AFTERCALL_WEBHOOK_URL": "https://user:canary@hooks.example:8443/canary?key=canary",
        "AFTERCALL_MCP_URL": "http://tools.example/canary",
    }
    loaded = load_config(environ=environ)
    shown = {value.key: value.shown for value in loaded.values}
    assert shown["webhook.url"] == "https://hooks.example:8443/… (rest hidden)"
    assert shown["mcp.url"] == "http://tools.example/… (rest hidden)"
    assert "canary" not in " ".join(shown.values())
    assert "canary" not in repr(loaded)


@pytest.mark.parametrize(
    "url", ["hooks.example/x", "ftp://x", "https:///x", "http:// x"]
)
def test_the_address_of_a_webhook_must_be_one(url: str) -> None:
    with pytest.raises(ConfigError, match=r"webhook\.url is not an address"):
        load_config(environ={"AFTERCALL_WEBHOOK_URL": url})


COMMANDS = '[agent]\ncommand = "fix-it --all"\n[mcp]\ncommand = "tools"\n'


def test_commands_named_by_a_file_of_the_current_folder_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path, COMMANDS)
    monkeypatch.chdir(tmp_path)
    (warning,) = load_config(environ={}).warnings
    assert f"{file}: found in the current folder" in warning
    assert "agent.command, mcp.command" in warning
    assert load_config(file, {}).warnings == ()


def test_commands_from_the_environment_are_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, '[agent]\ncommand = "theirs"\n')
    monkeypatch.chdir(tmp_path)
    assert load_config(environ={"AFTERCALL_AGENT_COMMAND": "mine"}).warnings == ()
