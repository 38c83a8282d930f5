"""What README, tutorial and how-tos print is run as printed: commands, settings, programs.

Commands that keep running, or that need a call in hand, are read to their last option here; what
they do has tests of its own. `test_docs_curl.py` runs the requests.
"""

import ast
import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from aftercall.app import build
from aftercall.cli.main import program
from aftercall.config import list_settings, parse_config
from aftercall.memory.fact_store import FactFilter
from aftercall.model.calls import encode_call
from aftercall.settings import Settings
from aftercall.settings.sections import WorkSettings
from followup_work import follow
from step_stages import take_call

ROOT = Path(__file__).parents[2]
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "tutorial.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
)
CALLER = "+15550142"
READ_ONLY = (
    "reconcile",  # needs the key of a service
    *("serve", "worker", "lab", "demo", "init", "test run", "test load", "test show"),
    *(
        "facts restore",
        "facts retire",
        "facts settle",
        "memory edit-pin",
        "archive cat recordings",
    ),
    *("backup", "restore"),  # tests/contract/test_backup.py runs them
)
OF_SYSTEMS = (  # of pages that set up a machine
    *(
        "sudo",
        "systemctl",
        "journalctl",
        "useradd",
        "install",
        "mkdir",
        "chmod",
        "chown",
        "cp",
    ),
    *(
        "docker",
        "python3",
        "git",
        "cd",
        "nginx",
        "caddy",
        "ln",
        "promtool",
        "sh",
        "rm",
        "mv",
    ),
    "/opt/aftercall/bin/pip",
    "/opt/aftercall/bin/aftercall",
)
OTHER_NAMES = {"MODEL", "TWILIO_PHONE_NUMBER", "OTEL_EXPORTER_OTLP_ENDPOINT"}


def is_whole(command: str) -> bool:
    """Whether no quote is open and no backslash says that it goes on."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return False
    return not command.endswith("\\")


def find_blocks(*languages: str) -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        blocks = re.findall(
            r"^```(\w*)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
        )
        found += [(page.name, text) for kind, text in blocks if kind in languages]
    return found


def list_commands() -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The page, the variables before a command, and its words."""
    for page, block in find_blocks("", "sh"):
        lines = iter(block.splitlines())
        for line in lines:
            while not is_whole(line):
                line += "\n" + next(lines)
            words = shlex.split(line.replace("\\\n", " "), comments=True)
            count = next(
                (n for n, word in enumerate(words) if not re.match(r"\w+=|…$", word)),
                len(words),
            )
            if words:
                yield page, tuple(words[:count]), tuple(words[count:])


COMMANDS = list(list_commands())
OURS = [(page, words[1:]) for page, _, words in COMMANDS if words[:1] == ("aftercall",)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home with a caller, a held request, a fact, a correction and a pin."""
    home = tmp_path_factory.mktemp("docs") / "home"
    app = build(Settings(home=home, work=WorkSettings(policy={"unknown": "hold"})))
    asked = "This is Bill. Please open a bug about the thumbnails."
    call = take_call(app, CALLER, asked, "I like green tea.", "Bye.")
    follow(app.work, call.conversation)
    (request, *_) = app.work.followups.page(limit=1)
    app.corrections.add_fact(
        call.id, who="docs", text="Has a dog", turn=2, category="person"
    )
    (fact, *_) = app.facts.page(FactFilter(limit=1))
    correction = app.corrections.correct("name", CALLER, "Bill", "docs")
    key = fact.key
    pin = app.pins.pin_topic(
        key, "Dubai move", app.audit.make_writer("docs", "edited", "a pin")
    )
    (home.parent / "call.json").write_bytes(encode_call(call))
    app.close()
    ids = {"facts": fact.id, "followups": request.id, "memory": pin.id, "CALL": call.id}
    return home, ids | {"corrections": correction.id}


def fill(words: tuple[str, ...], ids: dict[str, str]) -> list[str]:
    """The printed words with real ids and the caller of the prepared home."""
    kind = {"corrections request": "followups", "corrections fact": "facts"}
    of = ids.get(kind.get(" ".join(words[:2]), words[0]), "")
    filled = [{"ID": of, "CALL": ids["CALL"]}.get(word, word) for word in words]
    filled = [word.replace("+15550100", CALLER) for word in filled]
    return [ids["CALL"] if word.endswith("…") else word for word in filled]


@pytest.mark.parametrize(("page", "words"), OURS)
def test_a_printed_command_works(
    prepared: tuple[Path, dict[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    page: str,
    words: tuple[str, ...],
) -> None:
    home, ids = prepared
    if page == "object-storage.md":
        request.getfixturevalue("s3").name_bucket(monkeypatch)
    command = list(words[: words.index(">")] if ">" in words else words)
    if " ".join(command).startswith(READ_ONLY):
        command.append("--help")
    else:
        shutil.copytree(home.parent, tmp_path / "docs")
        monkeypatch.chdir(tmp_path / "docs")
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "note.md").write_text("# A note\n\nBill likes tea.\n")
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("AFTERCALL_HOME", str(tmp_path / "docs" / "home"))
        if page == "object-storage.md":  # the page begins with it
            CliRunner().invoke(program, ["archive", "move"])
        command = [
            word.replace("~", str(tmp_path)) for word in fill(tuple(command), ids)
        ]
        if "labels.jsonl" in command:
            exported = CliRunner().invoke(program, ["corrections", "export"])
            Path("labels.jsonl").write_text(exported.stdout)
    done = CliRunner().invoke(program, command, input="y\ny\n")
    assert done.exit_code in ((0, 1, 2) if command[0] == "health" else (0,)), (
        page,
        command,
        done.output,
        done.exception,
    )


def test_every_variable_that_is_set_is_a_setting() -> None:
    known = {env for _, env, _ in list_settings()} | OTHER_NAMES | {"AFTERCALL_HOME"}
    printed = set()
    for _, variables, words in COMMANDS:
        exported = words[1:] if words[:1] == ("export",) else ()
        printed |= {word.partition("=")[0] for word in (*variables, *exported)} - {"…"}
    assert printed - known == set()
    assert "TWILIO_AUTH_TOKEN" in printed


def test_every_package_and_target_that_is_named_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page, _, words in COMMANDS:
        if words[:1] == ("pip",):
            extra = re.fullmatch(r"aftercall(?:\[(\w+)\])?", words[-1])
            assert extra, (page, words)
            assert extra[1] in (None, *project["optional-dependencies"]), page
        elif words[:1] == ("make",):
            assert words[1] in targets, page
        else:
            known = ("aftercall", "curl", "export", *OF_SYSTEMS)
            assert not words or words[0] in known, (page, words)


@pytest.mark.parametrize(("page", "text"), find_blocks("toml"))
def test_printed_settings_are_valid(page: str, text: str) -> None:
    assert parse_config(text, Path(page), {}).warnings == ()


IMPORTABLE = [
    block
    for block in find_blocks("python")
    if block[0] not in ("livekit.md", "pipecat.md")  # tests/frameworks imports these
]


@pytest.mark.parametrize(("page", "text"), IMPORTABLE)
def test_a_printed_program_finds_what_it_imports(page: str, text: str) -> None:
    tree = ast.parse(text)
    imports: list[ast.stmt] = [
        one for one in tree.body if isinstance(one, ast.Import | ast.ImportFrom)
    ]
    assert imports
    exec(compile(ast.Module(imports, []), page, "exec"), {})  # noqa: S102 - our own docs


@pytest.mark.parametrize(("page", "text"), find_blocks("yaml", "json"))
def test_printed_data_can_be_read(page: str, text: str) -> None:
    read: Any = yaml.safe_load if "{" not in text[:1] else json.loads
    assert read(text), page
