"""What a ringing call waits for its briefing, while the store grows from a thousand facts to a
million.

python bench/bench_briefing.py [--sizes 1000,10000,100000,1000000]

Aims: prepared, at ring time, p50 ≤ 2 ms and p99 ≤ 10 ms; composed afresh p95 ≤ 50 ms; no growth
with the store.
"""

import argparse
import asyncio
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from aftercall.app import App, build
from aftercall.briefing.composer import brief_ring, fill_briefing
from aftercall.clock import format_instant
from aftercall.model.calls import LiveCall
from aftercall.settings import Settings
from aftercall.workspace.paths import Workspace
from fakes import START, make_live_call
from tables import met, percentile, print_table

FACTS_EACH, CALLS_EACH = 100, 10
MOST_CALLS = 100_000
RINGS, AFRESH, SAMPLE = 2_000, 400, 200
CATEGORIES = ("preference", "decision", "person", "action_item", "technical", "routine")
WORDS = (
    "invoice",
    "printer",
    "Tuesday",
    "garden",
    "contract",
    "sister",
    "Porto",
    "service",
    "battery",
    "garage",
    "lease",
    "piano",
)
PAGE = (
    "# USER.md\n\n- **Name:** Ann Example\n- **What to call them:** Ann\n- **Timezone:** "
    "Europe/Lisbon\n- **Notes:** Likes it short.\n"
)
FACT = """INSERT INTO facts (id, agent_id, caller, category, content, summary, visibility,
  confidence, needs_confirmation, first_seen_at,
 last_seen_at, valid_from, occurrence_count, is_active, identity, matching, reader, metadata)
 VALUES (?, 'main', ?, ?, ?, '', ?, 0.9, 0, ?, ?, ?, 1, ?, ?, NULL, 'rules', '{}')"""
CALL = """INSERT INTO calls (id, source, sid, agent_id, direction, caller, whose, callee,
  verified, started_at, ended_at, end_reason,
 conversation, metadata, state, owner, turn_count, archive_name, postcall)
 VALUES (?1, 'bench', ?2, 'main', 'inbound', ?3, ?3, '+15550101', 0, ?4, ?5, 'caller_hung_up',
  ?6, '{}', 'sealed', 'bench', 8, 'none',
 'started')"""
STEP = (
    "INSERT INTO steps (call_id, name, state, reason, attempts, result, changed_at) VALUES (?,"
    " 'summary', 'done', '', 1, ?, ?)"
)
DOCUMENT = """INSERT INTO documents (id, agent_id, caller, call_id, namespace, title, content,
  source, tags, metadata, made_at, changed_at)
 VALUES (?, 'main', ?, ?, '', 'A call', ?, 'voice-call', '[]', '{}', ?, ?)"""
FOLLOWUP = """INSERT INTO followups (id, key, kind, request_kind, title, details, conversation,
  call_id, agent_id, caller, turns, words,
 state, reason, trust, sink, created_at, changed_at)
 VALUES (?, ?, 'request', 'task', ?, '', ?, ?, 'main', ?, '[]', '', 'done', '', 'known',
  'files', ?, ?)"""
BRIEFING = (
    "INSERT INTO briefings (agent_id, caller, version, rests_on_all, form, body) VALUES "
    "('main', ?, 1, 0, ?, ?)"
)


@dataclass(frozen=True)
class Figures:
    facts: int
    calls: int
    ring: list[float]
    afresh: list[float]
    ring_cpu: float
    afresh_cpu: float
    """Milliseconds of processor time for one: what a busy machine does not change much."""


def number(caller: int) -> str:
    return f"+1999{caller:07}"


def sentence(luck: random.Random) -> str:
    return (
        f"Ann's {luck.choice(WORDS)} is about the {luck.choice(WORDS)} and the "
        f"{luck.choice(WORDS)} {luck.randrange(1000)}."
    )


def fact_rows(callers: range, luck: random.Random) -> Iterator[tuple[object, ...]]:
    for caller in callers:
        for n in range(FACTS_EACH):
            at = format_instant(START + timedelta(minutes=caller % 10_000, seconds=n))
            key = f"F{caller:010}{n:04}"
            level = "secret" if n % 20 == 0 else "shared"
            yield (
                key,
                number(caller),
                luck.choice(CATEGORIES),
                sentence(luck),
                level,
                at,
                at,
                at,
                n % 10 > 0,
                key,
            )


def call_rows(callers: range) -> Iterator[tuple[str, str, str, str, str, str]]:
    for caller in callers:
        for n in range(CALLS_EACH):
            key = f"C{caller:010}{n:04}"
            began = START + timedelta(minutes=caller % 10_000 + n)
            yield (
                key,
                key,
                number(caller),
                format_instant(began),
                format_instant(began + timedelta(minutes=3)),
                key,
            )


def grow(app: App, callers: range, luck: random.Random) -> None:
    """Plain bulk inserts, as fast as the file takes them; the app itself never writes like this."""
    connection = sqlite3.connect(app.settings.home / "aftercall.db")
    connection.execute("PRAGMA synchronous=OFF")
    connection.executemany(FACT, fact_rows(callers, luck))
    calling = range(callers.start, min(callers.stop, MOST_CALLS // CALLS_EACH))
    rows = list(call_rows(calling))
    connection.executemany(CALL, rows)
    connection.executemany(
        STEP, ((key, sentence(luck), ended) for key, _, _, _, ended, _ in rows)
    )
    page = "## A call\n\n### Context for Next Call\nAsk how it went.\n"
    connection.executemany(
        DOCUMENT,
        (
            (key, caller, key, page, ended, ended)
            for key, _, caller, _, ended, _ in rows
        ),
    )
    later = format_instant(START + timedelta(days=30))
    connection.executemany(
        FOLLOWUP,
        (
            (key, key, sentence(luck), key, key, caller, later, later)
            for key, _, caller, _, _, _ in rows[::5]
        ),
    )
    filler = json.dumps({"recent": [], "work": [], "facts": [], "filler": "x" * 2_000})
    connection.executemany(
        BRIEFING,
        ((number(caller), app.composer.settings_hash, filler) for caller in callers),
    )
    connection.commit()
    connection.execute("ANALYZE")
    connection.close()


def make_ready(app: App, callers: list[int]) -> None:
    """Prepare these the way a server does, and give each a page of their own."""
    for caller in callers:
        stale = app.briefings.start("main", number(caller), rests_on_all=False)
        fill_briefing(app.composer, stale)
        page = Workspace.from_settings(app.settings).find_person(number(caller))
        assert page is not None
        page.user.parent.mkdir(parents=True, exist_ok=True)
        page.user.write_text(PAGE)


def ring_of(caller: int) -> LiveCall:
    return make_live_call(caller=number(caller), started_at=START + timedelta(days=40))


async def time_rings(
    app: App, callers: list[int], times: int, luck: random.Random
) -> list[float]:
    taken = []
    for _ in range(times):
        call = ring_of(luck.choice(callers))
        begun = time.perf_counter()
        _, told = await brief_ring(app.composer, call, app.clock)
        taken.append(1_000 * (time.perf_counter() - begun))
        assert len(told.facts) == app.settings.briefing.facts, (
            "the briefing is empty: nothing was measured"
        )
        assert told.recent, "no earlier call was told: nothing was measured"
    return taken


def time_afresh(app: App, callers: list[int], luck: random.Random) -> list[float]:
    taken = []
    for _ in range(AFRESH):
        begun = time.perf_counter()
        told = app.composer.load_remembered("main", number(luck.choice(callers)))
        taken.append(1_000 * (time.perf_counter() - begun))
        assert told.facts, "nothing was remembered: nothing was measured"
    return taken


def measure(app: App, callers: int, luck: random.Random) -> Figures:
    calling = min(callers, MOST_CALLS // CALLS_EACH)
    chosen = luck.sample(range(calling), min(calling, SAMPLE))
    make_ready(app, chosen)
    others = luck.sample(range(calling), min(calling, AFRESH))
    asyncio.run(time_rings(app, chosen, 20, luck))  # what is loaded at the first call
    began = time.process_time()
    rings = asyncio.run(time_rings(app, chosen, RINGS, luck))
    rung = time.process_time()
    afresh = time_afresh(app, others, luck)
    ring_cpu, afresh_cpu = (
        1_000 * (rung - began) / RINGS,
        1_000 * (time.process_time() - rung) / AFRESH,
    )
    return Figures(
        callers * FACTS_EACH, calling * CALLS_EACH, rings, afresh, ring_cpu, afresh_cpu
    )


def report(found: list[Figures]) -> None:
    rows = []
    for each in found:
        p50, p99, p95 = (
            percentile(each.ring, 0.5),
            percentile(each.ring, 0.99),
            percentile(each.afresh, 0.95),
        )
        is_met = p50 <= 2 and p99 <= 10 and p95 <= 50
        figures = (
            p50,
            p99,
            each.ring_cpu,
            percentile(each.afresh, 0.5),
            p95,
            each.afresh_cpu,
        )
        rows.append(
            [
                f"{each.facts:,}",
                f"{each.calls:,}",
                *(f"{figure:.2f}" for figure in figures),
                met(is_met),
            ]
        )
    columns = [
        "facts",
        "calls",
        "ring p50 ms",
        "p99",
        "cpu",
        "afresh p50 ms",
        "p95",
        "cpu",
        "aims 2 / 10 / 50",
    ]
    print_table(
        "Briefing at ring time, whole way: thread, pages, resume state, prepared row",
        columns,
        rows,
    )
    small, large = found[0], found[-1]
    growth, composing = (
        large.ring_cpu / small.ring_cpu,
        large.afresh_cpu / small.afresh_cpu,
    )
    print(
        f"growth from {small.facts:,} to {large.facts:,} facts, processor time: ring × "
        f"{growth:.2f}, afresh × {composing:.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes", default="1000,10000,100000", help="numbers of facts, growing"
    )
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    luck = random.Random(20260213)
    found, known = [], 0
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as home:
        app = build(Settings.model_validate({"home": Path(home)}))
        for size in sizes:
            callers = max(size // FACTS_EACH, 1)
            begun = time.perf_counter()
            grow(app, range(known, callers), luck)
            print(f"{size:,} facts are there after {time.perf_counter() - begun:.0f} s")
            known = callers
            found.append(measure(app, callers, luck))
        app.close()
    report(found)


if __name__ == "__main__":
    main()
