"""How well facts are told apart, and how fast they are taken in.

python bench/bench_facts.py [--callers 10] [--database URL]

Wrong retirement: a fact that was left alone, or only repeated, is taken for replaced. Missed
update: one that was replaced stays believed. Missed duplicate: one that was repeated is kept
twice. Junk: a kept fact rests on nothing labelled. mem0 is measured by bench_mem0.py.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from aftercall.app import App, build
from aftercall.evaluation import Score
from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.claims import look_up_again, read_secret_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.extraction import Extractor, filter_drafts
from aftercall.model.calls import parse_call
from aftercall.model.reading import Reading
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings
from aftercall.testing import FakeReader
from fact_calls import KNOWN, Teller, Told
from tables import met, print_table

HERE = Path(__file__).parent
PAIRS = ("tuned.json", "held_out.json", "strangers_seen.json", "strangers.json")


def tell_apart(name: str) -> Counter[tuple[str, str]]:
    pairs = json.loads((HERE / "facts" / name).read_text())
    return Counter(
        (
            pair["is"],
            compare(
                read_secret_claim(pair["new"]),
                read_secret_claim(pair["known"]),
                pair["category"],
            ),
        )
        for pair in pairs
    )


def rates(name: str) -> list[list[str]]:
    came = tell_apart(name)
    of = {
        kind: sum(count for (label, _), count in came.items() if label == kind)
        for kind in ("same", "update", "different")
    }
    wrong = came["different", "update"] + came["same", "update"]
    figures = [
        ("wrong retirement", wrong, of["different"] + of["same"], 0.03),
        (
            "missed update",
            came["update", "different"] + came["update", "same"],
            of["update"],
            0.15,
        ),
        ("missed duplicate", came["same", "different"], of["same"], 0.30),
        ("merged by mistake", came["different", "same"], of["different"], 0.03),
    ]
    return [
        [
            f"{name}: {what}",
            f"{count} of {all_}",
            f"{count / all_:.1%}",
            f"≤ {aim:.0%}",
            met(count / all_ <= aim),
        ]
        for what, count, all_, aim in figures
    ]


def junk() -> list[str]:
    """The labelled calls through reader and sieve: what is kept and rests on no labelled turn."""
    total, reader = Score(), RulesReader()
    for file in sorted((HERE / "calls").glob("*.json")):
        labelled = json.loads(file.read_text())
        call = parse_call(labelled["call"])
        reading = reader.read(call)
        kept = tuple(
            found.draft
            for found in filter_drafts(call, reading.facts, Settings()).accepted
        )
        total.add(labelled["gold"], reading.model_copy(update={"facts": kept}))
    sound = total["facts, precision"]
    share = 1 - sound.share
    return [
        "labelled calls: junk",
        f"{sound.wrong} of {len(sound.items)}",
        f"{share:.1%}",
        "≤ 20%",
        met(share <= 0.20),
    ]


def take_in(app: App, callers: int) -> list[list[str]]:
    """By how many facts of the caller were known before; what was read of them is forgotten, as
    after a restart.
    """
    tellers = {
        known: [Teller(number * 1000 + known) for number in range(callers)]
        for known in KNOWN
    }
    for known, some in tellers.items():
        for teller in some:
            for told in teller.tell_known(known):
                _extract(app, told)
    parts = {
        known: _time(
            app, [told for teller in some for told in (teller.ring(), teller.ring())]
        )
        for known, some in tellers.items()
    }
    rows = [
        _speed(app, f"{known} facts known", [part]) for known, part in parts.items()
    ]
    return [*rows, _speed(app, "all", list(parts.values()), aim=1000)]


def _time(app: App, calls: list[Told]) -> tuple[int, float, float]:
    extractor = Extractor(app.settings, app.facts, app.clock)
    readers = [
        FakeReader(Reading(language="en", summary="x", facts=told.drafts))
        for told in calls
    ]
    for told in calls:
        app.journal.ingest(told.call)
    look_up_again.cache_clear()
    begun, busy = time.perf_counter(), time.process_time()
    came = [
        extractor.extract(told.call, reader)[0]
        for told, reader in zip(calls, readers, strict=True)
    ]
    took, worked = time.perf_counter() - begun, time.process_time() - busy
    taken = sum(
        entry.facts_extracted + entry.facts_updated + entry.facts_deduplicated
        for entry in came
    )
    if taken != sum(len(told.drafts) for told in calls):
        raise SystemExit(
            f"only {taken} of {sum(len(told.drafts) for told in calls)} facts were taken in: "
            "nothing was measured"
        )
    return taken, took, worked


def _speed(
    app: App, label: str, parts: list[tuple[int, float, float]], aim: int = 0
) -> list[str]:
    said, took, worked = (sum(part[place] for part in parts) for place in range(3))
    judged = [f"≥ {aim:,}", met(said / took >= aim)] if aim else ["", ""]
    return [
        f"{app.database.dialect}: {label}, {said:,} said",
        f"{said / took:,.0f}",
        f"{said / worked:,.0f}",
        *judged,
    ]


def _extract(app: App, told: Told) -> None:
    app.journal.ingest(told.call)
    Extractor(app.settings, app.facts, app.clock).extract(
        told.call, FakeReader(Reading(language="en", summary="x", facts=told.drafts))
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--callers", type=int, default=10, help="callers for each number of facts known"
    )
    parser.add_argument("--database", default="")
    arguments = parser.parse_args()
    columns = ["", "wrong", "rate", "aim", ""]
    print_table(
        "Telling facts apart, no model asked",
        columns,
        [row for name in PAIRS for row in rates(name)] + [junk()],
    )
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        app = build(
            Settings(
                home=Path(folder), database=DatabaseSettings(url=arguments.database)
            )
        )
        rows = take_in(app, arguments.callers)
        app.close()
    print_table(
        "Taking facts in: evidence, level, comparison, one transaction a call",
        ["", "facts/s", "per CPU second", "aim", ""],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
