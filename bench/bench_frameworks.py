"""What our recorders cost a Pipecat bot and a LiveKit agent: CPU of the bot's process, a call.

Calls of four questions and answers with audio both ways at the pace of quick talk, without the
work of a model, a voice or a recogniser;
then the same with a recorder, which sends to a server that stores nothing. Rounds alternate. Where
the rounds spread wider than the aim, the median of a few of them says nothing: take more rounds.
Last, what the client alone takes for such a call, which hardly spreads.

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
CLIENT = "the client alone"


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

    import livekit_audio
    from aftercall.client.livekit import SessionRecorder
    from livekit_audio import DeafRecogniser, Loudspeaker, Microphone, SilentVoice

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

    livekit_audio.WORD_S = WORD_S
    voice, ear = SilentVoice(), DeafRecogniser()
    session = bot.AgentSession(llm=FixedModel(), tts=voice, stt=ear)
    session.input.audio = Microphone()
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
            await asyncio.sleep(WORD_S * len(ANSWER.split()))
            await session.run(user_input=ANSWER)
        await session.aclose()
    await heard.aclose()


async def talk_alone(client: Any, is_recorded: bool) -> None:
    """What a recorder does during such a call, and nothing else."""
    from aftercall.client import CallWriter

    async with client.call(source="bench", sid=uuid.uuid4().hex) as call:
        writer = CallWriter(call)
        for _ in range(TURNS):
            for speaker in ("caller", "agent"):
                writer.add_turn(speaker, ANSWER, time.time())
                await asyncio.sleep(WORD_S)


TALKS: dict[str, Callable[[Any, bool], Awaitable[None]]] = {
    "Pipecat": talk_in_pipecat,
    "LiveKit": talk_in_livekit,
    CLIENT: talk_alone,
}


async def run_calls(name: str, address: str, calls: int, rounds: int) -> None:
    """In .venv-frameworks. Prints CPU milliseconds a call: without, with, without, …"""
    from aftercall.client import Client

    logging.disable(logging.WARNING)  # the frameworks' own
    talk = TALKS[name]
    with tempfile.TemporaryDirectory() as spool:
        async with Client(address, "bench", spool=spool) as client:

            async def run_round(is_recorded: bool) -> float:
                begun_s = time.process_time()
                with contextlib.redirect_stdout(io.StringIO()):
                    talks = (talk(client, is_recorded) for _ in range(calls))
                    await asyncio.gather(*talks)
                return 1e3 * (time.process_time() - begun_s) / calls

            await run_round(True)  # loads what it needs
            for _ in range(rounds):
                for is_recorded in (False, True):
                    print(await run_round(is_recorded), flush=True)


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
        if name == CLIENT:
            spread = f"{min(figures):.1f} … {max(figures):.1f} ms"
            alone = ["", f"{median(figures):.1f}", "", spread, "", ""]
            rows.append([name, *alone])
            continue
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
