"""What the bridge costs: delay of a frame each way, CPU and memory of a call, ring to first audio.

In one run: the server is a process of its own on one core, the load (callers and engine) on the
other. Beside it stand bridges that only pass audio on: on bare `websockets`, on FastAPI, and,
given a Python that has it, on Pipecat. Everybody talks all the time: the worst case. A bridge
that cannot keep up spends little on a call and much on what was heard of it: compare the CPU of
the audio that came through.

python bench/bench_bridge.py [--calls 50 150] [--seconds 8] [--pipecat-python FILE]
"""

import argparse
import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import httpx2
import uvloop

from aftercall.lab.twilio import EmulatedTwilio, LabCall
from bridge_load import Load
from tables import percentile, print_table

TOKEN = "bench"
KINDS = ("websockets", "fastapi", "aftercall")
HERE = Path(__file__).parent
TICKS = os.sysconf("SC_CLK_TCK")
RINGS = 40


@dataclass
class Figures:
    kind: str
    calls: int
    in_ms: tuple[float, float]
    out_ms: tuple[float, float]
    cpu_percent: float
    cpu_of_audio: float
    memory_kb: float
    late_ms: float
    lost_percent: float


@contextmanager
def server(kind: str, agent: str, pipecat: str = "") -> Iterator[tuple[int, str]]:
    """A bridge on the first core, its process id and address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as home:
        own = {
            "AFTERCALL_HOME": home,
            "AFTERCALL_PUBLIC_URL": address,
            "AFTERCALL_ENGINE": "deepgram",
            "AFTERCALL_DEEPGRAM_URL": agent,
        }
        keys = {
            "TWILIO_AUTH_TOKEN": TOKEN,
            "DEEPGRAM_API_KEY": "bench",
            "AFTERCALL_BRIDGE_DRAIN_S": "0",
        }
        if kind == "aftercall":
            arguments = [
                sys.executable,
                "-m",
                "aftercall",
                "serve",
                "--port",
                str(port),
            ]
        elif kind == "pipecat":
            arguments = [pipecat, str(HERE / "pipecat_server.py"), str(port), agent]
        else:
            arguments = [
                sys.executable,
                str(HERE / "bridge_servers.py"),
                kind,
                str(port),
                agent,
            ]
        core = {min(os.sched_getaffinity(0) or {0})} if CORES < 2 else {0}
        process = subprocess.Popen(
            arguments,
            env=os.environ | own | keys,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, core),
        )
        try:
            assert process.stdout is not None
            assert "http://" in process.stdout.readline(), f"{kind} did not start"
            time.sleep(1.0)
            yield process.pid, address
        finally:
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()


async def ring(
    http: httpx2.AsyncClient, twilio: EmulatedTwilio, address: str, number: int
) -> tuple[str, dict[str, str]]:
    """A webhook of the carrier: the call's sid, and what its stream must bring."""
    sid = f"CA{number:032x}"
    call = LabCall(sid, "+15550100", "+15550101", address, None, 0.0)
    answer = await twilio.post(call, f"{address}/twilio/voice", {})
    parameters = ElementTree.fromstring(answer.text).iter("Parameter")
    return sid, {item.attrib["name"]: item.attrib["value"] for item in parameters}


async def connect(
    load: Load,
    kind: str,
    address: str,
    calls: int,
    first: int = 0,
    *,
    stays: bool = True,
    pause_s: float = 0.011,
) -> list[float]:
    """Put so many callers on the line; seconds from ring to first audio, of each.

    Who does not stay hangs up then.
    """
    url = f"{address.replace('http', 'ws')}/twilio/media"
    took = []
    async with (
        EmulatedTwilio(TOKEN) as twilio,
        httpx2.AsyncClient(trust_env=False) as http,
    ):
        for number in range(first, first + calls):
            began = time.monotonic()
            if kind == "aftercall":
                sid, parameters = await ring(http, twilio, address, number)
            else:
                sid, parameters = f"CA{number:032x}", {}
            heard = await load.call(
                url, sid, parameters, {"x-twilio-signature": twilio.sign(url, {})}
            )
            try:
                await asyncio.wait_for(heard, 10)
            except TimeoutError:
                print(
                    f"{kind} is full: caller {number - first + 1} heard nothing for ten seconds"
                )
                break
            took.append(time.monotonic() - began)
            if not stays:
                load.hang_up()
            # so that not all of them send in the same millisecond
            await asyncio.sleep(pause_s)
    return took


async def measure(kind: str, calls: int, seconds: float, pipecat: str = "") -> Figures:
    load = Load()
    agent = await load.serve_engine()
    with server(kind, agent, pipecat) as (pid, address):
        # what is loaded at the first call is not the price of a call
        await connect(load, kind, address, 3, 1_000_000)
        empty = memory_kb(pid)
        await connect(load, kind, address, calls - 3)
        await asyncio.sleep(1.5)
        cpu, began = cpu_s(pid), time.monotonic()
        load.is_measuring = True
        await asyncio.sleep(seconds)
        load.is_measuring = False
        lasted, used = time.monotonic() - began, cpu_s(pid) - cpu
        grown = memory_kb(pid) - empty
        await load.stop()
    return Figures(
        kind,
        calls,
        delays_ms(load.to_engine),
        delays_ms(load.to_caller),
        100 * used / lasted / calls,
        100 * used / (load.audio_s / 2) if load.audio_s else float("nan"),
        grown / (calls - 3),
        1_000 * percentile(load.lateness, 0.99),
        100 * max(0.0, 1 - load.audio_s / (2 * calls * lasted)),
    )


async def measure_greeting(pause_s: float) -> list[float]:
    """Each caller hangs up at once, so the work of the calls before goes on meanwhile, on the
    same core.
    """
    load = Load()
    agent = await load.serve_engine()
    with server("aftercall", agent) as (_, address):
        await connect(load, "aftercall", address, 3, 1_000_000)
        load.hang_up()
        took = await connect(
            load, "aftercall", address, RINGS, stays=False, pause_s=pause_s
        )
        await load.stop()
    return took


def delays_ms(delays: list[int]) -> tuple[float, float]:
    return (
        (percentile(delays, 0.5) / 1e6, percentile(delays, 0.99) / 1e6)
        if delays
        else (float("nan"), float("nan"))
    )


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_kb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def show(figures: list[Figures]) -> None:
    rows = [
        [
            item.kind,
            str(item.calls),
            f"{item.in_ms[0]:.2f} / {item.in_ms[1]:.2f}",
            f"{item.out_ms[0]:.2f} / {item.out_ms[1]:.2f}",
            f"{item.cpu_percent:.2f} %",
            f"{item.cpu_of_audio:.2f} %",
            f"{item.memory_kb:.0f} KB",
            f"{item.late_ms:.1f} ms",
            f"{item.lost_percent:.1f} %",
        ]
        for item in figures
    ]
    columns = (
        "bridge",
        "calls",
        "caller→engine p50/p99 ms",
        "engine→caller p50/p99 ms",
        "CPU a call",
        "CPU of audio heard",
        "memory",
        "load late p99",
        "unheard",
    )
    print_table(
        "Everybody talks all the time; 50 frames a second each way and call",
        columns,
        rows,
    )


CORES = os.cpu_count() or 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, nargs="+", default=[50, 150])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument(
        "--pipecat-python", default="", help="a Python that has pipecat-ai[websocket]"
    )
    options = parser.parse_args()
    if CORES > 1:
        os.sched_setaffinity(0, {1})
    kinds = [*options.kinds, *(["pipecat"] if options.pipecat_python else [])]
    figures = [
        uvloop.run(measure(kind, calls, options.seconds, options.pipecat_python))
        for calls in options.calls
        for kind in kinds
    ]
    show(figures)
    rows = []
    for pause_s in (0.5, 0.011):
        took = uvloop.run(measure_greeting(pause_s))
        rows.append(
            [
                f"{1 / (pause_s + sum(took) / len(took)):.0f} a second",
                *(f"{1_000 * percentile(took, share):.1f} ms" for share in (0.5, 0.95)),
            ]
        )
    print_table(
        f"Ring to first audio, {RINGS} rings on one core; the aim is 50 ms at p95",
        ("rings", "p50", "p95"),
        rows,
    )
    if not options.pipecat_python:
        print("without --pipecat-python, Pipecat is left out of the comparison")


if __name__ == "__main__":
    main()
