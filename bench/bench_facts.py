"""How well facts are told apart, and how fast they are taken in.

python bench/bench_facts.py [--callers 50] [--database URL]

Wrong retirement: a fact that was left alone, or only repeated, is taken for replaced. Missed update: one that was replaced
stays believed. Missed duplicate: one that was repeated is kept twice. Junk: a kept fact rests on nothing labelled.
No other store is measured here: mem0 needs an embedder and a model, and asks both what is decided here by rules.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path

from aftercall.app import App, build
from aftercall.llm.rules.reader import RulesReader
from aftercall.llm.rules.vocabulary import vocabulary
from aftercall.memory.claims import read_secret_claim
from aftercall.memory.dedupe import compare
from aftercall.memory.extraction import Extractor
from aftercall.memory.sifting import sift
from aftercall.memory.store import Wanted
from aftercall.model.calls import Call, parse_call
from aftercall.model.reading import FactDraft, Reading
from aftercall.settings import DatabaseSettings, Settings
from aftercall.testing import START, FakeReader, make_call
from scoring import Score
from tables import met, print_table

HERE = Path(__file__).parent
CALLS_A_CALLER = 4
THINGS = sorted(
    vocabulary(
        "tea jazz chess rowing figs opera maths cycling lemons poetry sailing cheese history tennis painting gardens trains owls bread"
    )
)


def tell_apart(name: str) -> Counter[tuple[str, str]]:
    pairs = json.loads((HERE / "facts" / name).read_text())
    return Counter(
        (pair["is"], compare(read_secret_claim(pair["new"]), read_secret_claim(pair["known"]), pair["category"])) for pair in pairs
    )


def rates(name: str) -> list[list[str]]:
    came = tell_apart(name)
    of = {kind: sum(count for (label, _), count in came.items() if label == kind) for kind in ("same", "update", "different")}
    wrong = came["different", "update"] + came["same", "update"]
    figures = [
        ("wrong retirement", wrong, of["different"] + of["same"], 0.03),
        ("missed update", came["update", "different"] + came["update", "same"], of["update"], 0.15),
        ("missed duplicate", came["same", "different"], of["same"], 0.30),
        ("merged by mistake", came["different", "same"], of["different"], 0.03),
    ]
    return [
        [f"{name}: {what}", f"{count} of {all_}", f"{count / all_:.1%}", f"≤ {aim:.0%}", met(count / all_ <= aim)]
        for what, count, all_, aim in figures
    ]


def junk() -> list[str]:
    """The labelled calls through reader and sieve: what is kept and rests on no labelled turn."""
    total, reader = Score(), RulesReader()
    for file in sorted((HERE / "calls").glob("*.json")):
        labelled = json.loads(file.read_text())
        call = parse_call(labelled["call"])
        reading = reader.read(call)
        kept = tuple(found.draft for found in sift(call, reading.facts, Settings()).kept)
        total.add(labelled["gold"], reading.model_copy(update={"facts": kept}))
    bad = total.counts["facts found"] - total.counts["facts sound"]
    share = bad / total.counts["facts found"]
    return ["labelled calls: junk", f"{bad} of {total.counts['facts found']}", f"{share:.1%}", "≤ 20%", met(share <= 0.20)]


def make_calls(callers: int) -> list[tuple[Call, tuple[FactDraft, ...]]]:
    """Each caller rings several times: tells new things, repeats others, and changes their mind now and then."""
    made = []
    for caller in range(callers):
        for ring in range(CALLS_A_CALLER):
            said = [f"I like {thing}" for thing in THINGS[ring * 4 : ring * 4 + 7]]
            said += [f"I get up at {5 + ring}", f"My favourite number is {ring % 2}", f"I live in {('Porto', 'Faro')[ring % 2]}"]
            said += [f"My {kin} is allergic to {THINGS[(caller + ring) % len(THINGS)]}" for kin in ("son", "daughter", "wife")]
            turns = [("agent", "Hello!"), *(("caller", words) for words in said)]
            call = make_call(turns, caller=f"+1555{caller:07}", started_at=START + timedelta(days=ring))
            made.append((call, tuple(_draft(words, seq) for seq, words in enumerate(said, 2))))
    return made


def _draft(words: str, seq: int) -> FactDraft:
    return FactDraft(category="person", text=words, summary=words, visibility="shared", confidence=0.9, turns=(seq,), words=words)


def take_in(app: App, callers: int) -> list[str]:
    calls = make_calls(callers)
    for call, _ in calls:
        app.journal.take_in(call)
    extractor = Extractor(app.settings, app.facts, app.clock)
    begun, busy = time.perf_counter(), time.process_time()
    for call, drafts in calls:
        extractor.extract(call, FakeReader(Reading(language="en", summary="x", facts=drafts)))
    took, worked = time.perf_counter() - begun, time.process_time() - busy
    said = sum(len(drafts) for _, drafts in calls)
    stored = len(app.facts.page(Wanted(with_retired=True, limit=10_000)))
    label = f"{app.database.dialect}: {said} said in {len(calls)} calls, {stored} facts"
    return [label, f"{said / took:,.0f}", f"{said / worked:,.0f}", "≥ 1,000", met(said / took >= 1000)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--database", default="")
    arguments = parser.parse_args()
    columns = ["", "wrong", "rate", "aim", ""]
    print_table("Telling facts apart, no model asked", columns, [*rates("tuned.json"), *rates("held_out.json"), junk()])
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        app = build(Settings(home=Path(folder), database=DatabaseSettings(url=arguments.database)))
        row = take_in(app, arguments.callers)
        app.close()
    print_table("Taking facts in: evidence, level, comparison, one transaction a call", ["", "facts/s", "per CPU second", "aim", ""], [row])
    return 0


if __name__ == "__main__":
    sys.exit(main())
