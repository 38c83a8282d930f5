"""A real model, small and on this machine, as the tester's caller and judge: `make soak`.

Nobody asks it to play well. What it must not do is hang the run, or have a sound agent blamed
for what it says.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from aftercall.cli.main import program

pytestmark = pytest.mark.skipif(
    not os.environ.get("AFTERCALL_SOAK"), reason="slow: `make soak` brings the model"
)
SCENARIOS = ("appointment_scheduling", "opening_hours", "prescription_refill")
JUDGED = """
name: judged
goal: Learn when the clinic is open.
caller_context:
  opening: When are you open?
success: [{judged: The agent says when the clinic is open.}]
"""


def test_a_small_model_plays_and_judges_to_the_end_and_no_sound_agent_is_blamed(
    model_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "judged.yaml"
    file.write_text(JUDGED)
    environment = {
        "AFTERCALL_HOME": str(tmp_path),
        "AFTERCALL_TESTER_MODEL": "smollm2",
        "OPENAI_BASE_URL": model_url,
    }
    names = [word for name in (*SCENARIOS, str(file)) for word in ("-s", name)]
    began = time.perf_counter()
    done = CliRunner().invoke(
        program,
        ["test", "run", *names, "--agent", "practice", "--parallel", "1", "--json"],
        env=environment,
    )
    took_s = time.perf_counter() - began
    assert done.output, repr(done.exception)
    report = json.loads(done.output)
    turns = [
        turn
        for result in report["results"]
        for call in result["calls"]
        for turn in call["turns"]
        if turn["who"] == "caller"
    ]
    said_by = Counter("model" if turn["why"] == "model" else "script" for turn in turns)
    print(
        f"{took_s:.0f} s, lines {dict(said_by)}, verdicts "
        f"{[(item['scenario'], item['verdict']) for item in report['results']]}"
    )
    for result in report["results"]:
        print(
            [(finding["kind"], finding["who"]) for finding in result["findings"]],
            result["criteria"],
        )
        for turn in result["calls"][0]["turns"]:
            print(f"   {turn['who']:6} {turn['why']:12} {turn['text']}")
    assert len(report["results"]) == 4
    assert said_by["model"] > 0
    assert not [
        finding
        for result in report["results"]
        for finding in result["findings"]
        if finding["who"] == "agent" and finding["severity"] == "critical"
    ]
