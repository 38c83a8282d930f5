"""The files under deploy/: they name metrics that exist, and say what the docs promise."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from dockerfile_steps import read_steps
from prometheus_client.parser import text_string_to_metric_families

from aftercall import telemetry
from aftercall.cli.main import COMMANDS, load_command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
QUERIES = {
    **{rule["alert"]: rule["expr"] for rule in RULES},
    **{
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    },
}


@pytest.fixture(scope="module")
def exposed() -> set[str]:
    """The names in the text of /metrics, series of histograms included."""
    text = telemetry.start().render(list).decode()
    names = {family.name for family in text_string_to_metric_families(text)}
    endings = ("", "_count", "_sum", "_bucket", "_total")
    return {name + ending for name in names for ending in endings}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_alerts_and_charts_name_metrics_and_labels_that_exist(
    query: str, exposed: set[str]
) -> None:
    named = re.findall(r"\b((?:aftercall|process)_\w+)", query)
    assert named or query.startswith("up{")
    assert set(named) <= exposed
    forms = telemetry.TIMES | telemetry.COUNTERS | telemetry.GAUGES
    known = {label for form in forms.values() for label in form.labels}
    used = re.findall(r"by \(([\w, ]+)\)", query)
    labels = {label.strip() for group in used for label in group.split(",")}
    assert labels <= known | {"le"}


def test_every_metric_of_ours_is_on_a_chart() -> None:
    charts = " ".join(QUERIES.values())
    names = [*telemetry.TIMES, *telemetry.COUNTERS, *telemetry.GAUGES]
    assert [n for n in names if n != "info" and f"aftercall_{n}" not in charts] == []


def test_every_alert_is_explained_on_the_page_of_troubles() -> None:
    page = (ROOT / "docs" / "reference" / "troubles.md").read_text()
    assert [rule["alert"] for rule in RULES if rule["alert"] not in page] == []


def test_the_image_runs_without_root_and_says_when_it_is_ready() -> None:
    steps = read_steps((DEPLOY / "Dockerfile").read_text())
    given = dict(steps)
    assert given["USER"].isdigit()
    assert given["USER"] != "0"
    assert "/readyz" in given["HEALTHCHECK"]
    assert json.loads(given["ENTRYPOINT"]) == ["aftercall"]
    assert json.loads(given["CMD"])[0] in COMMANDS
    for _, rest in (step for step in steps if step[0] == "COPY"):
        for source in rest.split()[:-1]:
            assert source.startswith(("--", "/")) or (ROOT / source).exists()


def test_compose_runs_our_commands_read_only_and_without_privileges() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("server", "worker", "backup"):
        service = services[name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        command, *options = service.get("command", ["serve"])
        known = {flag for one in load_command(command).params for flag in one.opts}
        assert {one for one in options if one.startswith("--")} <= known
    assert services["server"]["ports"] == ["127.0.0.1:8080:8080"]


@pytest.mark.parametrize(
    "unit", sorted(DEPLOY.glob("aftercall*.service")), ids=lambda p: p.name
)
def test_units_start_commands_that_exist(unit: Path, tmp_path: Path) -> None:
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read_string(unit.read_text())
    command = parsed["Service"]["ExecStart"].split()
    assert command[1] in COMMANDS
    assert parsed["Service"]["NoNewPrivileges"] == "yes"
    if analyze := shutil.which("systemd-analyze"):
        copy = tmp_path / unit.name
        program = shutil.which("true")
        assert program
        copy.write_text(unit.read_text().replace(command[0], program))
        checked = subprocess.run(
            [analyze, "verify", copy],
            capture_output=True,
            text=True,
            check=False,
        )
        assert copy.name not in checked.stderr, checked.stderr
