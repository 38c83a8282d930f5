"""The documented agent: the real gptme, an emulated model behind it, and requests of a call.

`make soak` installs it.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aftercall.app import build
from aftercall.config import load_config
from aftercall.lab.models import make_openai
from aftercall.lab.rest import ModelScript, ScriptedQuestion, serve_on_loopback
from fakes import VirtualClock
from followup_work import follow, hold_call

GUIDE = Path(__file__).parents[2] / "docs" / "howto" / "follow-ups.md"
KEY = "sk-lab"
MODEL = "lab-model"
SAID = [
    ("agent", "Hello."),
    (
        "caller",
        "Please order paper for the printer. And please order two chairs for the hall.",
    ),
]
pytestmark = pytest.mark.skipif(
    not os.environ.get("AFTERCALL_SOAK"), reason="slow: `make soak` installs gptme"
)


def answer(asked: ScriptedQuestion) -> str:
    """As a model would: use the shell to report each request as done, then end the session."""
    if "complete" not in asked.system:
        return "Orders by phone"  # gptme asks for a title of the conversation
    if any(role == "assistant" for role, _ in asked.messages):
        return "```complete\n```"
    keys = re.findall(r'"key": "(\w+:agent)"', asked.data)
    done = "\n".join(
        f'{{"request": "{key}", "state": "done", "link": "https://x.example/{key[:4]}"}}'
        for key in keys
    )
    return f"I order it.\n\n```shell\ncat > \"$AFTERCALL_RESULT_FILE\" <<'END'\n{done}\nEND\n```"


def documented_settings() -> str:
    blocks: list[str] = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (agent,) = [block for block in blocks if block.startswith("[agent]")]
    return agent


def install_gptme(folder: Path) -> str:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", "gptme"], check=True)
    return str(folder / "bin")


@pytest.mark.timeout(1800)
def test_the_documented_gptme_line_does_the_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PATH", install_gptme(tmp_path / "venv") + os.pathsep + os.environ["PATH"]
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MODEL", f"local/{MODEL}")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    file = tmp_path / "aftercall.toml"
    file.write_text(documented_settings())
    environment = {
        "AFTERCALL_HOME": str(tmp_path / "home"),
        "AFTERCALL_WORK_POLICY": "unknown=do",
    }
    script = ModelScript(answer)
    with serve_on_loopback(make_openai(script, KEY, (MODEL,))) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        app = build(load_config(file, environ=environment).settings, VirtualClock())
        rows = follow(app.work, hold_call(app, SAID).conversation)
        app.close()
    assert [(row.state, row.reason) for row in rows] == [("done", "")] * 2
    assert all(row.link and row.link.startswith("https://x.example/") for row in rows)
    assert len(list((tmp_path / "home" / "agent").iterdir())) == 1
    assert "two chairs" in script.questions[0].data
