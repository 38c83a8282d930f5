"""The bots of `examples/` as `make pipecat` and `make livekit` run them; what the docs print."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["pipecat", "livekit"])
def test_the_printed_program_finds_what_it_imports(name: str) -> None:
    page = (ROOT / "docs" / "howto" / f"{name}.md").read_text()
    text = page.partition("```python\n")[2].partition("```")[0]
    body = ast.parse(text).body
    imports: list[ast.stmt] = [one for one in body if isinstance(one, ast.ImportFrom)]
    assert len(imports) == 2
    exec(compile(ast.Module(imports, []), name, "exec"), {})  # noqa: S102 - our own docs


@pytest.mark.parametrize("name", ["pipecat", "livekit"])
def test_the_second_call_is_briefed_with_what_the_first_one_said(name: str) -> None:
    clean = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("AFTERCALL_")
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{name}_bot.py")],
        env=clean,
        capture_output=True,
        text=True,
        check=True,
    )
    _, first, second = done.stdout.split("--- the telephone rings ---")
    briefing, said = second.split("</briefing>")
    assert "plumber" not in first.partition("</briefing>")[0]
    assert "Caller: This is Maya. Please call the plumber" in briefing
    assert "Agent: I remember: " in said
