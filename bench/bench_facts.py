"""How well facts are told apart, and how fast they are taken in.

python bench/bench_facts.py [--callers 10] [--database URL] [--judge MODULE:FACTORY] [--pairs PATH]

Wrong retirement: a fact that was left alone, or only repeated, is taken for replaced. Missed
update: one that was replaced stays believed and undisputed. Missed duplicate: one that was repeated
is kept twice. Disputed in vain: both hold, and somebody is asked. Junk: a kept fact rests on
nothing labelled. mem0 is measured by bench_mem0.py.

--judge adds the figures with a judge, as `memory.judge` names it, and its time for each pair.
--pairs adds pairs of your own: files in the form of those in facts/, or folders with a
pairs.jsonl of lines {"old": …, "new": …, "relation": "same|update|correction|different"}.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from aftercall.app import App, build
from aftercall.evaluation import Score
from aftercall.llm.rules.reader import RulesReader
from aftercall.memory.claims import look_up_again, read_secret_claim
from aftercall.memory.dedupe import compare, match_subjects
from aftercall.memory.extraction import Extractor, filter_drafts
from aftercall.memory.judge import Judge, load_judge, weigh
from aftercall.memory.words import to_term
from aftercall.model.calls import parse_call
from aftercall.model.reading import Reading
from aftercall.settings import Settings
from aftercall.settings.sections import DatabaseSettings, MemorySettings
from fact_calls import KNOWN, Teller, Told
from fakes import FakeReader
from tables import met, print_table

HERE = Path(__file__).parent
PAIRS = (
    "tuned.json",
    "held_out.json",
    "strangers_seen.json",
    "strangers.json",
    "N",
    "O",
)


def tell_apart(
    path: Path, judge: Judge | None, times: list[float]
) -> Counter[tuple[str, str]]:
    return Counter(
        (pair["is"], tell_pair_apart(pair, judge, times)) for pair in read_pairs(path)
    )


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """A correction is an update of a fact that was never true."""
    if path.is_file():
        pairs: list[dict[str, Any]] = json.loads(path.read_text())
        return pairs
    lines = (path / "pairs.jsonl").read_text().splitlines()
    return [
        {
            "known": told["old"],
            "new": told["new"],
            "is": told["relation"].replace("correction", "update"),
            "category": told.get("category", "person"),
        }
        for told in map(json.loads, filter(str.strip, lines))
    ]


def tell_pair_apart(
    pair: dict[str, Any], judge: Judge | None, times: list[float]
) -> str:
    """By the rules, and what they leave open by the judge, as the step after a call does it."""
    new, known = read_secret_claim(pair["new"]), read_secret_claim(pair["known"])
    verdict = compare(new, known, pair["category"])
    if judge is None or verdict in ("same", "update"):
        return verdict
    match = match_subjects(new, known, pair["category"])
    begun = time.perf_counter()
    settled = weigh(judge, pair["new"], {"1": pair["known"]}, {"1": match})
    times.append(time.perf_counter() - begun)
    ends = {"replaced": "update", "disputed": "disputed", "both": "different"}
    return ends[settled["1"]] if settled else verdict


def rates(path: Path, judge: Judge | None, times: list[float]) -> list[list[str]]:
    came = tell_apart(path, judge, times)
    name = path.name if path.is_file() else "/".join(path.parts[-2:])
    of = {
        kind: sum(count for (label, _), count in came.items() if label == kind)
        for kind in ("same", "update", "different")
    }
    wrong = came["different", "update"] + came["same", "update"]
    figures = [
        ("wrong retirement", wrong, of["different"] + of["same"], 0.01),
        (
            "missed update",
            came["update", "different"] + came["update", "same"],
            of["update"],
            0.15,
        ),
        ("missed duplicate", came["same", "different"], of["same"], 0.30),
        ("merged by mistake", came["different", "same"], of["different"], 0.03),
        ("disputed in vain", came["different", "disputed"], of["different"], 0.05),
        ("updates disputed", came["update", "disputed"], of["update"], 1.0),
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
        if all_
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
    to_term.cache_clear()
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
    parser.add_argument("--judge", default="", help="as `memory.judge` names it")
    parser.add_argument("--pairs", nargs="*", type=Path, default=[])
    arguments = parser.parse_args()
    columns = ["", "wrong", "rate", "aim", ""]
    paths = [*(HERE / "facts" / name for name in PAIRS), *arguments.pairs]
    rows = [row for path in paths for row in rates(path, None, [])]
    print_table("Telling facts apart, no model asked", columns, [*rows, junk()])
    judge = load_judge(Settings(memory=MemorySettings(judge=arguments.judge)))
    if judge is not None:
        times: list[float] = []
        rows = [row for path in paths for row in rates(path, judge, times)]
        print_table(f"Telling facts apart with {judge.name}", columns, rows)
        print(
            f"Judge: {len(times)} pairs, {1000 * sum(times) / len(times):.0f} ms each"
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
