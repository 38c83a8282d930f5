"""The two things a newcomer sees: the demo, and a server that keeps what was said out of its
logs.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from websockets.sync.client import connect

from aftercall.settings import Settings
from api_client import bearer
from loopback_server import listening

AFTERCALL = [sys.executable, "-m", "aftercall"]
CANARY = "xylophone"


def environment(home: Path) -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERCALL_")
    } | {"AFTERCALL_HOME": str(home)}


@pytest.mark.timeout(400)  # half a minute where nothing else runs
def test_the_demo_tells_the_whole_story_and_exits_0(tmp_path: Path) -> None:
    env = environment(tmp_path) | {"TMPDIR": str(tmp_path)}
    shown = subprocess.run(
        [*AFTERCALL, "demo"],
        env=env,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    for told in (
        "I have taken down: open a bug about the broken thumbnails",
        "crossed out: book a table for four",
        "sealed, interrupted",
        "I have changed that: send Dana the signed contract, by Friday",
        "Hey Bill, last time you asked me to send Dana the signed contract",
        (
            "held       Open a bug about the broken thumbnails on the gallery page  it leaves "
            "this machine, and the caller is unknown"
        ),
        (
            "done       Open a bug about the broken thumbnails on the gallery page  "
            "https://github.com/acme/site/issues/41"
        ),
        "noted      Send Dana the signed contract  tasks/",
        "Written down: Send Dana the signed contract",
        "withdrawn  Book a table for four",
        "all proven: 4 sealed calls",
    ):
        assert told in shown.stdout
    assert "Done: Send Dana" not in shown.stdout  # nobody sent anything
    homes = re.findall(r"its home is (\S+)", shown.stdout)
    assert (Path(homes[0]) / "workspace" / "CALLS.md").read_text().count("### ") == 4


def test_the_demo_ends_on_pages_that_its_link_opens(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from rich.console import Console\n"
        "from aftercall.cli.demo import DemoPrinter, show_pages\n"
        "show_pages(DemoPrinter(Console(width=200)), Path(sys.argv[1]), sys.argv[2])"
    )
    with listening() as (_, address):
        pass  # a port that was free just now
    demo = subprocess.Popen(
        [sys.executable, "-u", "-c", script, str(tmp_path), address],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert demo.stdout is not None
    told = ""
    while "Ctrl-C" not in told:
        told += demo.stdout.readline()
    (link,) = re.findall(r"http\S+", told)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(link) as page:
        assert page.url == f"{address}/"
        assert "Today" in page.read().decode()
    demo.send_signal(signal.SIGINT)
    assert demo.wait(30) == 0
    demo.stdout.close()


def test_what_was_said_is_kept_and_never_logged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    arguments = [*AFTERCALL, "serve", "--port", "0", "--log-json"]
    server = subprocess.Popen(
        arguments,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        address = next(
            word
            for word in server.stdout.readline().split()
            if word.startswith("http://")
        )
        with connect(
            f"{address.replace('http', 'ws')}/browser/call?caller=%2B15550142",
            additional_headers=bearer(Settings(home=home)),
            proxy=None,
        ) as socket:
            call_id = json.loads(socket.recv())["call"]
            socket.send(
                json.dumps(
                    {
                        "type": "say",
                        "text": f"Hi, this is Bill. Please call the {CANARY} shop. My PIN is 4711.",
                    }
                )
            )
            assert CANARY in json.loads(socket.recv())["text"]
            socket.send("not a frame")
            assert json.loads(socket.recv())["type"] == "refused"
        call = finished(address, call_id, bearer(Settings(home=home)))
    finally:
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=30)
    assert any(CANARY in turn["text"] for turn in call["turns"])
    assert CANARY in (home / "workspace" / "CALLS.md").read_text()
    assert "4711" not in (home / "workspace" / "CALLS.md").read_text()
    for secret in (CANARY, "4711", "15550142", "Bill"):
        assert secret not in out + err


def finished(
    address: str, call_id: str, token: dict[str, str]
) -> dict[str, list[dict[str, str]]]:
    request = urllib.request.Request(f"{address}/api/calls/{call_id}", headers=token)
    while True:
        with urllib.request.urlopen(request) as answer:
            call: dict[str, list[dict[str, str]]] = json.load(answer)
        if call["steps"] and all(
            step["state"] not in ("waiting", "running") for step in call["steps"]
        ):
            return call
        time.sleep(0.1)
