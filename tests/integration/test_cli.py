"""The commands as a person runs them: output, exit codes, one-line errors."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aftercall.cli
from aftercall.cli.main import COMMANDS, PANELS, load_command, program
from aftercall.lab.services import EmulatedGitHub
from aftercall.model.calls import encode_call
from aftercall.settings import Settings
from api_client import JSON, bearer
from command_process import run_command
from fakes import make_call
from waiting import until

AFTERCALL = str(Path(sys.executable).with_name("aftercall"))


class Shell:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AFTERCALL_")
        } | {"AFTERCALL_HOME": str(home)}

    def run(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        return run_command(words, self.env, self.home.parent, stdin)

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [AFTERCALL, *words],
            env=self.env,
            stderr=subprocess.PIPE,
            cwd=self.home.parent,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "home")


def test_ingest_list_show_and_verify(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "call.json"
    file.write_bytes(
        encode_call(
            make_call(
                [("agent", "Hey!"), ("caller", "Open a bug [bold]please[/]")],
                caller="+15551234567",
            )
        )
    )
    code, out, _ = shell.run("ingest", str(file), "--json")
    assert code == 0
    call_id = json.loads(out)["id"]
    code, out, _ = shell.run("ingest", str(file))
    assert (code, out.split()[0]) == (0, call_id)
    assert "known already" in out
    code, out, _ = shell.run("calls", "list", "--json")
    assert [call["id"] for call in json.loads(out)] == [call_id]
    code, out, _ = shell.run("calls", "list")
    assert call_id in out
    assert "+15551234567" in out
    code, out, _ = shell.run("calls", "show", call_id)
    assert "Open a bug [bold]please[/]" in out
    code, out, _ = shell.run("calls", "show", call_id, "--json")
    assert json.loads(out)["turns"][0]["text"] == "Hey!"
    code, out, _ = shell.run("verify")
    assert code == 0
    assert "all proven: 1 sealed call" in out


def test_verify_names_an_edited_and_a_removed_file(shell: Shell) -> None:
    for number in range(3):
        shell.run(
            "ingest", "-", stdin=encode_call(make_call([("caller", f"call {number}")]))
        )
    edited, removed, _ = sorted((shell.home / "archive").glob("*.json"))
    data = bytearray(edited.read_bytes())
    data[100] ^= 1
    edited.write_bytes(data)
    removed.unlink()
    code, out, _ = shell.run("verify")
    assert code == 1
    assert edited.name in out
    assert removed.name in out
    assert {
        fault["kind"]
        for fault in json.loads(shell.run("verify", "--json")[1])["faults"]
    } == {
        "edited",
        "missing",
    }


@pytest.mark.parametrize(
    ("stdin", "said"),
    [
        (b"{}", "source: is missing"),
        (b"\xff", "call: is not valid UTF-8"),
        (b"nope", "call: is not valid JSON"),
    ],
)
def test_a_bad_file_is_one_clear_line_and_exit_1(
    shell: Shell, stdin: bytes, said: str
) -> None:
    code, out, err = shell.run("ingest", "-", stdin=stdin)
    assert (code, out) == (1, "")
    assert err.startswith(f"aftercall: -: {said}")
    assert err.count("\n") == 1


def test_wrong_use_and_wrong_settings_exit_2(shell: Shell, tmp_path: Path) -> None:
    assert shell.run("calls", "fly")[0] == 2
    (tmp_path / "aftercall.toml").write_text("timezon = 'UTC'")
    code, _, err = shell.run("calls", "list")
    assert code == 2
    assert (
        err
        == "aftercall: aftercall.toml: unknown setting 'timezon'; did you mean 'timezone'?\n"
    )
    assert shell.run("--config", "none.toml", "config")[0] == 2


def test_config_shows_where_values_come_from_and_hides_secrets(
    shell: Shell, tmp_path: Path
) -> None:
    (tmp_path / "aftercall.toml").write_text(
        "timezone = 'Europe/Berlin'\n[openai]\napi_key = 'sk-canary'\n"
    )
    code, out, _ = shell.run("config")
    assert code == 0
    assert "sk-canary" not in out
    values = {
        value["key"]: value for value in json.loads(shell.run("config", "--json")[1])
    }
    assert values["timezone"] == values["timezone"] | {
        "value": "Europe/Berlin",
        "origin": "aftercall.toml",
        "env": "AFTERCALL_TIMEZONE",
    }
    assert values["home"]["origin"] == "AFTERCALL_HOME"


def test_doctor_finds_this_machine_fit(shell: Shell) -> None:
    code, out, _ = shell.run("doctor", "--json")
    states = {check["name"]: check["state"] for check in json.loads(out)}
    assert code == 0
    assert (states["home"], states["database"]) == ("ok", "ok")


def test_doctor_names_a_home_that_cannot_be_used(shell: Shell, tmp_path: Path) -> None:
    shell.home.write_text("a file where a folder should be")
    code, out, _ = shell.run("doctor")
    assert code == 1
    assert "fail  home" in out


def modes(home: Path) -> set[str]:
    """Kind and mode of everything in the home, and of the home itself."""
    found = (home, *home.rglob("*"))
    kinds = {True: "folder", False: "file"}
    return {f"{kinds[path.is_dir()]} {path.stat().st_mode & 0o777:o}" for path in found}


def ingest_call(shell: Shell, words: str = "The heron flies at midnight.") -> str:
    """The id of a call that was stored and worked off."""
    call = make_call([("agent", "Hey!"), ("caller", words), ("agent", "Bye.")])
    code, out, err = shell.run(
        "ingest", "-", "--wait", "--json", stdin=encode_call(call)
    )
    assert (code, err) == (0, "")
    return str(json.loads(out)["id"])


def test_nobody_else_on_the_machine_can_open_the_home(shell: Shell) -> None:
    before = os.umask(0o022)
    try:
        ingest_call(shell)
    finally:
        os.umask(before)
    assert modes(shell.home) == {"folder 700", "file 600"}


def test_doctor_tells_of_a_home_that_others_can_open_and_mends_it(
    shell: Shell, tmp_path: Path
) -> None:
    ingest_call(shell)
    outside = tmp_path / "outside.txt"
    outside.touch()
    outside.chmod(0o644)
    (shell.home / "link").symlink_to(outside)
    (shell.home / "script.sh").touch()
    for path, mode in (
        (shell.home, 0o755),
        (shell.home / "archive", 0o750),
        (shell.home / "aftercall.db", 0o644),
        (shell.home / "script.sh", 0o755),
    ):
        path.chmod(mode)

    def access() -> tuple[int, str, str]:
        code, out, _ = shell.run("doctor", "--json")
        found = {check["name"]: check for check in json.loads(out)}["access"]
        return code, found["state"], found["detail"]

    assert access() == (0, "warn", "other users could open 4 files and folders; mended")
    assert access() == (0, "ok", "only this user can open the home")
    assert outside.stat().st_mode & 0o777 == 0o644
    (shell.home / "link").unlink()
    assert modes(shell.home) == {"folder 700", "file 600", "file 700"}


def test_archive_cat_prints_an_encrypted_call(shell: Shell) -> None:
    shell.env["AFTERCALL_ARCHIVE_ENCRYPT"] = "true"
    call_id = ingest_call(shell)
    (file,) = (shell.home / "archive").glob("*.json")
    assert b"heron" not in file.read_bytes()
    for named in (call_id, f"archive/{file.name}"):
        code, out, _ = shell.run("archive", "cat", named)
        assert (code, json.loads(out)["id"]) == (0, call_id)
        assert "The heron flies at midnight." in out
    _, out, _ = shell.run("archive", "cat", file.name, "--json")
    assert (json.loads(out)["id"], json.loads(out)["addenda"]) == (call_id, [])
    assert shell.run("verify")[0] == 0


def test_archive_cat_prints_a_clear_call_and_names_one_that_is_not_there(
    shell: Shell,
) -> None:
    call_id = ingest_call(shell)
    (file,) = (shell.home / "archive").glob("*.json")
    assert shell.run("archive", "cat", call_id)[1].encode() == file.read_bytes()
    code, _, err = shell.run("archive", "cat", "nothing")
    missing = "aftercall: there is no call, archive file or recording 'nothing'\n"
    assert (code, err) == (1, missing)


def test_archive_cat_prints_calls_and_recordings_of_this_home_and_nothing_else(
    shell: Shell,
) -> None:
    call_id = ingest_call(shell)
    (sealed,) = (shell.home / "archive").glob("*.json")
    outside = shell.home.parent / "outside.wav"
    outside.write_text("not ours")
    recordings = shell.home / "recordings"
    recordings.mkdir(exist_ok=True)
    (recordings / "link.wav").symlink_to(outside)
    (recordings / "ours.wav").write_text("ours")
    assert shell.run("archive", "cat", "recordings/ours.wav")[:2] == (0, "ours")
    for named in (
        "secret.key",
        str(outside),
        "recordings/../secret.key",
        "archive/../secret.key",
        "recordings/link.wav",
    ):
        code, out, err = shell.run("archive", "cat", named)
        assert (code, out) == (1, "")
        assert "there is no call, archive file or recording" in err
    sealed.unlink()
    assert shell.run("archive", "cat", call_id)[:2] == (1, "")


def test_archive_cat_prints_nothing_of_a_file_that_was_cut(shell: Shell) -> None:
    shell.env["AFTERCALL_ARCHIVE_ENCRYPT"] = "true"
    call_id = ingest_call(shell)
    (file,) = (shell.home / "archive").glob("*.json")
    file.write_bytes(file.read_bytes()[:-16])
    code, out, err = shell.run("archive", "cat", call_id)
    assert (code, out) == (1, "")
    assert "cannot be opened" in err


def test_an_encrypted_home_without_its_key_is_not_started(shell: Shell) -> None:
    shell.env["AFTERCALL_ARCHIVE_ENCRYPT"] = "true"
    ingest_call(shell)
    (shell.home / "secret.key").unlink()
    code, out, _ = shell.run("doctor", "--json")
    found = {check["name"]: check["state"] for check in json.loads(out)}
    assert (code, found["secret key"]) == (1, "fail")
    code, _, err = shell.run("verify")
    assert code == 2
    assert "restore it from a copy" in err


def test_db_upgrade_may_be_run_again(shell: Shell) -> None:
    assert shell.run("db", "upgrade") == shell.run("db", "upgrade")
    assert shell.run("db", "upgrade")[0] == 0


def test_serve_says_where_it_listens_and_stops_cleanly(shell: Shell) -> None:
    server = subprocess.Popen(
        [AFTERCALL, "serve", "--port", "0"],
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        address = next(word for word in line.split() if word.startswith("http://"))
        with urllib.request.urlopen(f"{address}/healthz") as answer:
            assert json.load(answer)["status"] == "ok"
        request = urllib.request.Request(
            f"{address}/api/calls",
            encode_call(make_call()),
            JSON | bearer(Settings(home=shell.home)),
        )
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 201
    finally:
        server.send_signal(signal.SIGTERM)
        _, err = server.communicate(timeout=20)
    assert server.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in err
    assert not list((shell.home / "run").glob("*.lock"))


def test_serve_shows_the_token_once_and_a_login_link_each_time(shell: Shell) -> None:
    told: list[list[str]] = []
    for _ in range(2):
        with started(shell, "serve", "--host", "0.0.0.0", "--port", "0") as server:
            assert server.stdout is not None
            lines = [server.stdout.readline() for _ in range(2)]
            link = lines[1].split()[-1]
            assert link.startswith("http://127.0.0.1:")
            _, out, _ = shell.run("token", "--link", "--json")
            for address in (link, json.loads(out)["link"]):
                cookies = urllib.request.HTTPCookieProcessor()
                with urllib.request.build_opener(cookies).open(address) as page:
                    assert "Log out" in page.read().decode()
            server.terminate()
            told.append([*lines, *server.stdout.read().splitlines()])
    token = shell.run("token")[1].strip()
    assert [token in "".join(lines) for lines in told] == [True, False]
    shell.env["AFTERCALL_API_TOKEN"] = "mine-and-nobodys"
    assert shell.run("token") == (0, "mine-and-nobodys\n", "")


@contextmanager
def started(shell: Shell, *words: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [AFTERCALL, *words],
        env=shell.env | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout:
            process.stdout.close()


def test_a_worker_does_what_nobody_did_after_a_call(shell: Shell) -> None:
    shell.run(
        "ingest",
        "-",
        stdin=encode_call(
            make_call(
                [
                    ("agent", "Hello!"),
                    ("caller", "This is Bill. Please call the plumber."),
                ]
            )
        ),
    )
    worker = subprocess.Popen(
        [AFTERCALL, "worker"],
        env=shell.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert worker.stdout is not None
        assert "works" in worker.stdout.readline()
        (call,) = json.loads(shell.run("calls", "list", "--json")[1])
        states: set[str] = set()
        while not states or states & {"waiting", "running"}:
            states = {
                step["state"]
                for step in json.loads(
                    shell.run("calls", "show", call["id"], "--json")[1]
                )["steps"]
            }
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.communicate(timeout=20)
    assert worker.returncode == 0
    assert "Call the plumber" in (shell.home / "workspace" / "CALLS.md").read_text()
    code, out, _ = shell.run("calls", "rerun", call["id"], "summary")
    assert code == 0
    assert "done    summary" in out


def test_reading_a_file_stores_nothing(shell: Shell) -> None:
    raw = encode_call(
        make_call([("caller", "This is Bill. Please call the plumber by Friday.")])
    )
    code, out, _ = shell.run("read", "-", "--json", stdin=raw)
    assert code == 0
    reading = json.loads(out)
    assert (reading["profile"]["name"], len(reading["requests"])) == ("Bill", 1)
    assert {
        "summary",
        "profile",
        "identity",
        "requests",
        "unclear",
        "withdrawn",
        "promises",
        "facts",
    } <= set(reading)
    assert not shell.home.exists()
    assert "call the plumber" in shell.run("read", "-", stdin=raw)[1].lower()


def test_a_file_of_calls_is_read_line_by_line_in_order(
    shell: Shell, tmp_path: Path
) -> None:
    said = ("Please call the plumber.", "Please order paper.")
    raw = [encode_call(make_call([("caller", words)])) for words in said]
    lines = [json.dumps(json.loads(each)) for each in raw]
    calls = tmp_path / "calls.jsonl"
    calls.write_text("\n".join(lines) + "\n")
    code, out, _ = shell.run("read", str(calls), "--json")
    assert code == 0
    titles = [json.loads(line)["requests"][0]["title"] for line in out.splitlines()]
    assert titles == ["Call the plumber", "Order paper"]


def test_talking_from_the_terminal(shell: Shell) -> None:
    code, out, _ = shell.run(
        "talk", "--caller", "+15550142", stdin=b"Please call the plumber.\n\n"
    )
    assert code == 0
    assert "I have taken down: call the plumber." in out
    assert "summary" in out


def test_serve_refuses_a_database_newer_than_itself(shell: Shell) -> None:
    import sqlite3

    shell.run("db", "upgrade")
    with sqlite3.connect(shell.home / "aftercall.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    code, _, err = shell.run("serve", "--port", "0")
    assert code == 2
    assert "newer than this version knows" in err


def test_what_was_said_can_be_searched(shell: Shell) -> None:
    said = [
        ("agent", "Hello!"),
        ("caller", "Hi, this is Bill. We adopted two greyhounds. Please call the vet."),
        ("agent", "I will."),
    ]
    shell.run(
        "ingest",
        "-",
        "--wait",
        stdin=encode_call(make_call(said, caller="+15551234567")),
    )
    code, out, _ = shell.run(
        "search", 'adopting "two greyhound"', "--json", "--caller", "+15551234567"
    )
    hits = json.loads(out)
    assert (code, len(hits), hits[0]["turn"], hits[0]["before"][0]["text"]) == (
        0,
        1,
        2,
        "Hello!",
    )
    code, out, _ = shell.run("search", "greyhound", "--as-of", "2001-01-01")
    assert (code, out) == (0, "Nothing found.\n")
    assert shell.run("search", "greyhound", "--caller", "anonymous")[0] == 1


ODD_WORDS = "Call me :x: or [bold]now[/bold] [/] [red]at[ eight"


def test_what_people_said_is_printed_as_they_said_it(tmp_path: Path) -> None:
    file = tmp_path / "call.json"
    file.write_bytes(encode_call(make_call([("agent", "Hey!"), ("caller", ODD_WORDS)])))
    environment = {"AFTERCALL_HOME": str(tmp_path / "home"), "AFTERCALL_MODEL": "rules"}
    taken = CliRunner().invoke(
        program, ["ingest", str(file), "--json"], env=environment
    )
    shown = CliRunner().invoke(
        program, ["calls", "show", json.loads(taken.output)["id"]], env=environment
    )
    assert ODD_WORDS in shown.output


def test_a_test_call_is_shown_as_it_was_said(tmp_path: Path) -> None:
    scenario = tmp_path / "odd.yaml"
    scenario.write_text(
        f'name: odd\ndescription: ":x: [red]d[/]"\nturns: [{{say: "{ODD_WORDS}"}}]\n'
    )
    environment = {
        "AFTERCALL_HOME": str(tmp_path / "home"),
        "AFTERCALL_TESTER_SCENARIOS": str(tmp_path),
    }
    ran = CliRunner().invoke(
        program,
        ["test", "run", "-s", str(scenario), "--agent", "practice", "--json"],
        env=environment,
    )
    call_id = json.loads(ran.stdout)["results"][0]["calls"][0]["id"]
    assert (
        ODD_WORDS
        in CliRunner()
        .invoke(program, ["test", "show", call_id, "--reveal"], env=environment)
        .output
    )
    assert (
        ":x: [red]d[/]"
        in CliRunner().invoke(program, ["test", "list"], env=environment).output
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_in_the_table_loads_and_has_help(name: str) -> None:
    assert load_command(name).help
    assert CliRunner().invoke(program, [name, "--help"]).exit_code == 0


def test_the_list_of_commands_loads_no_command(shell: Shell) -> None:
    script = (
        "import sys; from aftercall.cli.main import program; program(['--help'], "
        "standalone_mode=False); print([name for name in sys.modules if name in "
        "('aftercall.app', 'aftercall.cli.calls', 'fastapi', 'dbos')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=shell.env,
        capture_output=True,
        check=True,
        text=True,
    )
    assert all(name in done.stdout for name in COMMANDS)
    assert done.stdout.splitlines()[-1] == "[]"


def test_only_one_place_makes_a_console() -> None:
    """So that nothing interprets what people said; styles are Text objects."""
    for path in Path(aftercall.cli.__file__).parent.glob("*.py"):
        text = path.read_text()
        assert ("Console(" in text.replace("make_console(", "")) == (
            path.name == "console.py"
        ), path.name
        assert "rich.markup" not in text, path.name


ASKS_FOR_A_BUG = """
reconnect_window_s = 0
[github]
token = "the-lab's-own-token"
repository = "acme/site"
api_url = "{url}"
[work]
policy = {{ unknown = "do" }}
"""


async def test_work_a_command_cannot_finish_is_handed_to_the_next_process(
    shell: Shell, tmp_path: Path
) -> None:
    call = make_call(
        [
            ("agent", "Hello."),
            ("caller", "Please open a bug about the broken thumbnails."),
            ("agent", "I will."),
        ]
    )
    with EmulatedGitHub("the-lab's-own-token", faults=deque(["down"] * 50)) as github:
        (tmp_path / "aftercall.toml").write_text(ASKS_FOR_A_BUG.format(url=github.url))
        code, _, told = shell.run("ingest", "-", "--wait", stdin=encode_call(call))
        assert (code, "Traceback" in told) == (0, False)
        github.faults.clear()
        worker = shell.start("worker")
        await until(lambda: bool(github.issues))
        await until(
            lambda: (
                "done" in shell.run("followups", "list", "--state", "done", "--json")[1]
            )
        )
        worker.send_signal(signal.SIGTERM)
        assert b"Traceback" not in worker.communicate()[1]
        assert worker.returncode == 0
        assert len(github.issues) == 1
    _, listed, _ = shell.run("followups", "list", "--json")
    assert {
        (row["state"], row["reason"])
        for row in json.loads(listed)
        if row["kind"] == "request"
    } == {("done", "")}


def test_health_is_failing_where_the_database_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "aftercall.db").write_bytes(b"no database" * 1_000)
    told = CliRunner().invoke(
        program, ["health"], env={"AFTERCALL_HOME": str(tmp_path)}
    )
    assert (told.exit_code, told.output.split()[0]) == (2, "failing")


def test_every_command_has_its_place_in_the_help() -> None:
    placed = [name for names in PANELS.values() for name in names]
    assert sorted(placed) == sorted(COMMANDS)


HEAVY = ("sqlalchemy", "pydantic", "dbos", "fastapi", "structlog", "alembic")


@pytest.mark.parametrize("words", [["-h"], ["calls", "-h"], ["calls", "list", "-h"]])
def test_help_loads_neither_database_nor_settings(
    shell: Shell, words: list[str]
) -> None:
    assert not loaded_modules(shell, *words) & set(HEAVY)


def test_listing_calls_loads_neither_memory_nor_engine_nor_server(shell: Shell) -> None:
    shell.run("db", "upgrade")
    loaded = loaded_modules(shell, "calls", "list")
    assert "sqlalchemy" in loaded
    assert not loaded & {"dbos", "fastapi", "structlog", "alembic", "aftercall.app"}
    assert not [name for name in loaded if name.startswith("aftercall.llm")]


def loaded_modules(shell: Shell, *words: str) -> set[str]:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from aftercall.cli.main import run\n"
        "run()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=shell.env,
        capture_output=True,
        check=True,
    )
    return set(done.stderr.decode().split())


def test_the_shell_completes_commands(shell: Shell) -> None:
    shell.env |= {"COMP_WORDS": "aftercall calls ", "COMP_CWORD": "2"}
    shell.env["_AFTERCALL_COMPLETE"] = "complete_bash"
    assert shell.run()[1].split() == ["list", "show", "rerun"]


def test_a_misspelt_setting_is_named_with_the_nearest_one(shell: Shell) -> None:
    shell.env["AFTERCALL_TIMEZON"] = "UTC"
    code, _, err = shell.run("calls", "list")
    assert code == 0
    assert (
        "AFTERCALL_TIMEZON: no such setting; did you mean 'AFTERCALL_TIMEZONE'?" in err
    )


def test_config_shows_what_is_set_and_all_of_it_if_asked(shell: Shell) -> None:
    assert "reconnect_window_s" not in shell.run("config")[1]
    assert str(shell.home) in shell.run("config")[1]
    assert "AFTERCALL_RECONNECT_WINDOW_S" in shell.run("config", "--all")[1]
