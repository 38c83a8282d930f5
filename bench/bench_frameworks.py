"""What our recorders cost a Pipecat bot and a LiveKit agent: CPU of the bot's process, a call.

Calls of four turns, in Pipecat with audio both ways at the pace of quick talk, in LiveKit
with audio from the agent and text from the caller;
then the same with a recorder, which sends to a server that stores nothing. Rounds alternate. Where
the rounds spread wider than the aim, the median of a few of them says nothing: take more rounds.

python bench/bench_frameworks.py [--python .venv-frameworks/bin/python] [--calls 8] [--rounds 8]
"""

import argparse
import asyncio
import contextlib
import io
import logging
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"
ANSWER = "That is noted, and somebody will look at it before the end of this week."
TURNS, WORD_S, AUDIO_S = 4, 0.2, 0.02
MAX_SHARE = 3.0  # per cent


async def talk_in_pipecat(client: Any, is_recorded: bool) -> None:
    import pipecat_bot as bot
    from loguru import logger
    from pipecat.frames.frames import InputAudioRawFrame

    from aftercall.client.pipecat import PipelineRecorder

    class FixedModel(bot.RuleModel):
        async def _answer(self, context: object) -> None:
            for word in ANSWER.split(" "):
                await self._push_llm_text(f"{word} ")

    logger.remove()
    bot.WORD_S = WORD_S
    line, model, connected = bot.Line(), FixedModel(), asyncio.Event()
    worker, pair = bot.build_worker(line, model, bot.LLMContext())

    @line.event_handler("on_client_connected")
    def note(transport: object, caller: object) -> None:
        connected.set()

    async def send_audio() -> None:
        silence = bytes(2 * round(16_000 * AUDIO_S))
        while True:
            await line.input().push_frame(InputAudioRawFrame(silence, 16_000, 1))
            await asyncio.sleep(AUDIO_S)

    call = client.call(source="bench", sid=uuid.uuid4().hex)
    recorder = PipelineRecorder(call, pair, model, line)
    async with recorder if is_recorded else contextlib.nullcontext():
        runner = bot.WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        work = asyncio.create_task(runner.run())
        await connected.wait()
        audio = asyncio.create_task(send_audio())
        for _ in range(TURNS):
            await line.say(ANSWER)
            await line.bot_is_silent()
        audio.cancel()
        await worker.queue_frame(bot.EndFrame())
        await work


async def talk_in_livekit(client: Any, is_recorded: bool) -> None:
    import livekit_bot as bot
    from livekit.agents import llm
    from livekit.agents.voice.transcription.synchronizer import TranscriptSynchronizer

    from aftercall.client.livekit import SessionRecorder
    from livekit_audio import Loudspeaker, SilentVoice

    class FixedStream(bot.RuleStream):
        async def _run(self) -> None:
            for word in ANSWER.split(" "):
                delta = llm.ChoiceDelta(role="assistant", content=f"{word} ")
                self._event_ch.send_nowait(llm.ChatChunk(id="1", delta=delta))

    class FixedModel(llm.LLM):
        def chat(self, *, chat_ctx: Any, conn_options: Any, **_: Any) -> FixedStream:
            return FixedStream(
                self, chat_ctx=chat_ctx, tools=[], conn_options=conn_options
            )

    session = bot.AgentSession(llm=FixedModel(), tts=SilentVoice())
    heard = TranscriptSynchronizer(
        next_in_chain_audio=Loudspeaker(), next_in_chain_text=None
    )
    session.output.audio = heard.audio_output
    session.output.transcription = heard.text_output
    agent = bot.Agent(instructions="Be kind.")
    call = client.call(source="bench", sid=uuid.uuid4().hex)
    recorder = SessionRecorder(call, session, agent)
    async with recorder if is_recorded else contextlib.nullcontext():
        await session.start(agent)
        for _ in range(TURNS):
            await session.run(user_input=ANSWER)
            await asyncio.sleep(WORD_S)
        await session.aclose()
    await heard.aclose()


TALKS: dict[str, Callable[[Any, bool], Awaitable[None]]] = {
    "Pipecat": talk_in_pipecat,
    "LiveKit": talk_in_livekit,
}


async def run_calls(name: str, address: str, calls: int, rounds: int) -> None:
    """In .venv-frameworks. Prints CPU milliseconds a call: without, with, without, …"""
    from aftercall.client import Client

    logging.disable(logging.WARNING)  # the frameworks' own
    talk = TALKS[name]
    for _ in range(rounds):
        for is_recorded in (False, True):
            with tempfile.TemporaryDirectory() as spool:
                async with Client(address, "bench", spool=spool) as client:
                    with contextlib.redirect_stdout(io.StringIO()):
                        await talk(client, is_recorded)  # loads what it needs
                        begun_s = time.process_time()
                        talks = (talk(client, is_recorded) for _ in range(calls))
                        await asyncio.gather(*talks)
                        cpu_s = time.process_time() - begun_s
            print(1e3 * cpu_s / calls, flush=True)


def measure(python: Path, calls: int, rounds: int) -> None:
    from bench_live import bare_server
    from tables import median, met, print_table

    rows = []
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT}/src:{ROOT}/examples:{ROOT}/tests"
    }
    for name in TALKS:
        with tempfile.TemporaryDirectory() as folder, bare_server(Path(folder)) as at:
            words = [name, at[0], str(calls), str(rounds)]
            done = subprocess.run(
                [str(python), __file__, "--child", *words],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        figures = [float(line) for line in done.stdout.split()]
        without, recorded = median(figures[::2]), median(figures[1::2])
        share = 100 * (recorded / without - 1)
        pairs = zip(figures[::2], figures[1::2], strict=True)
        shares = [100 * (one / other - 1) for other, one in pairs]
        spread = f"{min(shares):+.0f} … {max(shares):+.0f} %"
        times = [f"{without:.1f}", f"{recorded:.1f}", f"{share:+.1f} %", spread]
        aim = f"≤ +{MAX_SHARE:.0f} %"
        rows.append([f"{name}, {calls} calls", *times, aim, met(share <= MAX_SHARE)])
    columns = ["", "CPU ms a call", "with a recorder", "more", "by round", "aim", ""]
    print_table("What a recorder costs the bot", columns, rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        name, address, calls, rounds = sys.argv[2:]
        asyncio.run(run_calls(name, address, int(calls), int(rounds)))
        sys.exit()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", type=Path, default=PYTHON)
    parser.add_argument("--calls", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=8)
    given = parser.parse_args()
    measure(given.python, given.calls, given.rounds)
