"""The lab as its users meet it: one command, the settings it prints, and the vendors' own
clients as they are installed.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from aftercall.lab.speech import ToneDetector, utter
from aftercall.settings import Settings
from aftercall.speech.sound import write_wav
from api_client import bearer
from loopback_server import listening
from server_process import serving_on
from vendor_clients import PAUSE, converse_with_realtime

AFTERCALL = str(Path(sys.executable).with_name("aftercall"))
HI: list[Any] = [{"role": "user", "content": "Hi"}]


@dataclass
class Running:
    address: str
    set: dict[str, str]

    def order(self, fault: str) -> int:
        return httpx2.post(
            f"{self.address}/lab/faults", json={"fault": fault}
        ).status_code


@pytest.fixture(scope="module")
def lab() -> Iterator[Running]:
    command = [
        AFTERCALL,
        "lab",
        "--port",
        "0",
        "--json",
        "--number",
        "+15550102=busy",
        "--reply",
        "Which one?",
    ]
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("AFTERCALL_")
    }
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=clean | {"PYTHONUNBUFFERED": "1"},
    ) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        try:
            yield Running(told["address"], told["settings"])
        finally:
            process.terminate()
            process.wait(20)


def test_twilios_client_places_a_call(lab: Running) -> None:
    from twilio.rest import Client

    client = Client(lab.set["TWILIO_ACCOUNT_SID"], lab.set["TWILIO_AUTH_TOKEN"])
    client.api.base_url = lab.set["AFTERCALL_TWILIO_API_URL"]
    call = client.calls.create(
        to="+15550102",
        from_=lab.set["TWILIO_PHONE_NUMBER"],
        twiml="<Response><Say>Hello</Say></Response>",
    )
    for _ in range(500):
        if client.calls(call.sid).fetch().status == "busy":
            return
    raise AssertionError("the line was never busy")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_deepgrams_client_talks_to_an_agent(lab: Running) -> None:
    from deepgram import AsyncDeepgramClient, DeepgramClientEnvironment
    from deepgram.agent.v1.types import AgentV1Settings

    socket = lab.set["AFTERCALL_DEEPGRAM_URL"].removesuffix("/v1/agent/converse")
    there = DeepgramClientEnvironment(
        base=lab.address, production=socket, agent=socket, agent_rest=lab.address
    )
    client = AsyncDeepgramClient(api_key=lab.set["DEEPGRAM_API_KEY"], environment=there)
    audio = {"encoding": "mulaw", "sample_rate": 8000}
    settings = {
        "type": "Settings",
        "audio": {"input": audio, "output": audio | {"container": "none"}},
        "agent": {
            "greeting": "Hello there!",
            "think": {"provider": {"type": "open_ai", "model": "gpt-4o-mini"}},
        },
    }
    ear, heard, done = ToneDetector(), "", 0
    async with client.agent.v1.connect() as agent:
        await agent.send_settings(AgentV1Settings.model_validate(settings))
        async for event in agent:
            if isinstance(event, bytes):
                list(ear.detect(event))
            elif event.type == "ConversationText" and event.role == "user":
                heard = event.content
            elif event.type == "AgentAudioDone":
                done += 1
                if done == 2:
                    break
                await agent.send_media(utter("Open a bug.") + PAUSE)
    assert heard == "Open a bug."
    assert ear.finish().startswith("Hello there!")


async def test_openais_client_chats_transcribes_and_talks(lab: Running) -> None:
    from openai import AsyncOpenAI, RateLimitError

    async with AsyncOpenAI(
        api_key=lab.set["OPENAI_API_KEY"],
        base_url=lab.set["OPENAI_BASE_URL"],
        max_retries=0,
    ) as client:
        answer = await client.chat.completions.create(model="gpt-5.4-mini", messages=HI)
        assert answer.choices[0].message.content
        assert lab.order("openai=rate_limit") == 204
        with pytest.raises(RateLimitError):
            await client.chat.completions.create(model="gpt-5.4-mini", messages=HI)
        text = await client.audio.transcriptions.create(
            model="whisper-1", file=("a.wav", write_wav(utter("Hello")))
        )
        assert text.text.startswith("Hello")
        async with client.realtime.connect(model="gpt-realtime") as connection:
            _, transcripts = await converse_with_realtime(connection, "Open a bug.")
    assert transcripts[:2] == ["Hello there!", "Open a bug."]
    assert len(transcripts) == 3


def test_anthropics_client_is_answered_and_refused_on_order(lab: Running) -> None:
    import anthropic

    url, key = lab.set["ANTHROPIC_BASE_URL"], lab.set["ANTHROPIC_API_KEY"]
    with anthropic.Anthropic(api_key=key, base_url=url, max_retries=0) as client:
        for fault, refusal in (
            ("rate_limit", anthropic.RateLimitError),
            ("overloaded", anthropic.APIStatusError),
        ):
            assert lab.order(f"anthropic={fault}") == 204
            with pytest.raises(refusal):
                client.messages.create(
                    model="claude-sonnet-5-5", max_tokens=50, messages=HI
                )
        said = client.messages.create(
            model="claude-sonnet-5-5", max_tokens=50, messages=HI
        )
        assert said.content[0].type == "text"
        with pytest.raises(anthropic.NotFoundError):
            client.messages.create(model="claude-0", max_tokens=50, messages=HI)


def test_memory_and_issues_are_kept(lab: Running) -> None:
    with httpx2.Client(
        base_url=lab.set["REMEM_API_URL"],
        headers={"x-api-key": lab.set["REMEM_API_KEY"]},
    ) as remem:
        assert lab.order("remem=unavailable") == 204
        assert [
            remem.post("/v1/documents", json={"content": "The pipes leak."}).status_code
            for _ in range(2)
        ] == [503, 201]
        assert (
            len(remem.post("/v1/query", json={"query": "pipes"}).json()["results"]) == 1
        )
    headers = {"Authorization": f"Bearer {lab.set['GITHUB_TOKEN']}"}
    issues = f"/repos/{lab.set['AFTERCALL_GITHUB_REPOSITORY']}/issues"
    with httpx2.Client(
        base_url=lab.set["AFTERCALL_GITHUB_API_URL"], headers=headers
    ) as github:
        assert lab.order("github=drop_after_work") == 204
        with pytest.raises(httpx2.HTTPError):
            github.post(issues, json={"title": "The gallery is broken"})
        assert [issue["title"] for issue in github.get(issues).json()] == [
            "The gallery is broken"
        ]


def test_wrong_keys_and_unknown_faults_are_refused(lab: Running) -> None:
    for path, scheme in (
        ("/v1/agent/converse", "Token"),
        ("/v1/realtime?model=gpt-realtime", "Bearer"),
    ):
        url = f"ws{lab.address.removeprefix('http')}{path}"
        with (
            pytest.raises(InvalidStatus) as refusal,
            connect(
                url, additional_headers={"Authorization": f"{scheme} wrong"}, proxy=None
            ),
        ):
            raise AssertionError("a wrong key was let in")
        assert refusal.value.response.status_code == 401
    assert lab.order("anthropic=earthquake") == 422
    assert lab.order("fax=busy") == 422


def test_an_agent_with_these_settings_is_rung_with_streamed_audio_by_both_carriers(
    lab: Running, tmp_path: Path
) -> None:
    """Aftercall itself on the emulated Deepgram, pointed at the lab with what the lab says."""
    port, told = (
        lab.address.rpartition(":")[2],
        {
            name: lab.set[name]
            for name in lab.set
            if "AFTERCALL" in name or "PUBLIC_KEY" in name
        },
    )
    told |= {
        name: lab.set[name]
        for name in (
            "TWILIO_ACCOUNT_SID",
            "TWILIO_AUTH_TOKEN",
            "TELNYX_API_KEY",
            "DEEPGRAM_API_KEY",
        )
    }
    with listening() as (_, public):
        pass  # a port that is free
    with serving_on(
        int(public.rpartition(":")[2]),
        tmp_path,
        told | {"AFTERCALL_PUBLIC_URL": public},
    ) as address:
        for carrier, caller in (("twilio", "+15550103"), ("telnyx", "+15550104")):
            words = [
                "--port",
                port,
                "--agent",
                address,
                "--carrier",
                carrier,
                "--ring",
                caller,
                "--say",
                "Open a bug.",
                "--json",
            ]
            done = subprocess.run(
                [AFTERCALL, "lab", *words],
                capture_output=True,
                text=True,
                check=False,
                stdin=subprocess.DEVNULL,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            turns = [
                (turn["speaker"], turn["text"])
                for turn in json.loads(done.stdout)["turns"]
            ]
            assert [speaker for speaker, _ in turns] == ["agent", "caller", "agent"]
            assert turns[0][1].startswith("Hello!")
        token = bearer(Settings(home=tmp_path))
        calls = httpx2.get(f"{address}/api/calls", headers=token).json()
    assert sorted((call["source"], call["caller"]) for call in calls["calls"]) == [
        ("telnyx", "+15550104"),
        ("twilio", "+15550103"),
    ]
