"""Our memory beside mem0's, in one run: the same calls, the same facts found in them, the same
queries.

python bench/bench_mem0.py [--callers 30] [--stored 10000] [--mem0-python PATH]

mem0 is no part of this project. Without --mem0-python an environment is made for it and thrown
away afterwards. Model and embedder cost nothing on either side. Both keep what they are given
on disk; ours also checks the evidence, compares with every fact known of the caller, and
retires what was replaced. mem0 2 does less for each call and does it together: one search for
what is known (its local store compares with every vector there is, so this grows with the
store), one answer of the model, all embeddings, rows and history at once, and only an equal
text counts as said before. So its cost is mostly that one search, ours mostly the facts
themselves.

The pairs of facts/strangers*.json are told to both, each to a caller of its own: which facts are
still believed then, undisputed. mem0 2 only ever adds: no model makes it retire a fact.
"""

import argparse
import json
import subprocess
import tempfile
import time
import venv
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

from aftercall.app import App, build
from aftercall.memory.extraction import Extractor
from aftercall.memory.fact_store import FactFilter
from aftercall.model.facts import MemoryKey
from aftercall.model.passages import SearchScope
from aftercall.model.reading import Category, FactDraft, Reading
from aftercall.settings import Settings
from fact_calls import Teller, Told
from fakes import START, FakeReader, make_call
from tables import met, percentile, print_table

RINGS = 4
LAST = 0.75
QUERIES = 100
OTHERS = 100
PAIRS = ("strangers.json", "strangers_seen.json")
SIDE = Path(__file__).with_name("mem0_side.py")
PACKAGES = ("mem0ai", "qdrant-client")


def make_calls(callers: int) -> list[Told]:
    tellers = [Teller(number) for number in range(callers)]
    return [teller.ring() for _ in range(RINGS) for teller in tellers]


def make_queries(calls: list[Told]) -> list[dict[str, str]]:
    return [
        {"caller": str(told.call.caller), "text": told.drafts[0].text} for told in calls
    ]


def make_stored(count: int) -> list[Told]:
    return [
        told
        for number in range(count // OTHERS)
        for told in Teller(1_000_000 + number).tell_known(OTHERS)
    ]


def measure_ours(
    folder: Path, stored: list[Told], calls: list[Told], queries: list[dict[str, str]]
) -> dict[str, Any]:
    app = build(Settings(home=folder))
    extractor = Extractor(app.settings, app.facts, app.clock)
    try:
        for told in stored:
            app.journal.ingest(told.call)
            extractor.extract(
                told.call,
                FakeReader(Reading(language="en", summary="x", facts=told.drafts)),
            )
        return _run(app, calls, queries)
    finally:
        app.close()


def _run(app: App, calls: list[Told], queries: list[dict[str, str]]) -> dict[str, Any]:
    extractor = Extractor(app.settings, app.facts, app.clock)
    readers = [
        FakeReader(Reading(language="en", summary="x", facts=told.drafts))
        for told in calls
    ]
    for told in calls:
        app.journal.ingest(told.call)
    taken = []
    for told, reader in zip(calls, readers, strict=True):
        begun, busy = time.perf_counter(), time.process_time()
        entry, _ = extractor.extract(told.call, reader)
        took, worked = time.perf_counter() - begun, time.process_time() - busy
        taken.append(
            (
                entry.facts_extracted + entry.facts_updated + entry.facts_deduplicated,
                took,
                worked,
            )
        )
    times, found = [], 0
    for query in queries:
        started = time.perf_counter()
        found += bool(
            app.search.find(
                query["text"], SearchScope("main", query["caller"]), limit=10
            )
        )
        times.append(time.perf_counter() - started)
    kept = [_keep_pair(app, at, pair) for at, pair in enumerate(read_pairs())]
    return {"taken": taken, "times": times, "found": found, "kept": kept}


def read_pairs() -> list[dict[str, str]]:
    folder = SIDE.parent / "facts"
    return [pair for name in PAIRS for pair in json.loads((folder / name).read_text())]


def _keep_pair(app: App, number: int, pair: dict[str, str]) -> list[str]:
    """The facts that are believed and undisputed after both were said, in two calls."""
    caller = f"+1999{number:07}"
    category = pair["category"] if pair["category"] in get_args(Category) else "person"
    extractor = Extractor(app.settings, app.facts, app.clock)
    for day, text in enumerate((pair["known"], pair["new"])):
        call = make_call(
            [("agent", "Hello!"), ("caller", text), ("agent", "Noted.")],
            caller=caller,
            started_at=START + timedelta(days=day),
        )
        app.journal.ingest(call)
        draft = FactDraft.model_validate(
            {
                "category": category,
                "text": text,
                "summary": text[:100],
                "visibility": "shared",
                "confidence": 0.9,
                "turns": (2,),
                "words": text,
            }
        )
        reading = Reading(language="en", summary="x", facts=(draft,))
        extractor.extract(call, FakeReader(reading))
    found = app.facts.page(FactFilter(key=MemoryKey("main", caller)))
    return [fact.content for fact in found if fact.state == "active"]


def count_kept(measured: dict[str, Any]) -> list[str]:
    """Updates after which the old fact is still believed, repetitions kept twice, facts lost."""
    counts = Counter[tuple[str, str]]()
    for pair, kept in zip(read_pairs(), measured["kept"], strict=True):
        end = (
            "both" if len(kept) > 1 else "lost" if pair["known"] not in kept else "one"
        )
        counts[pair["is"], end] += 1
    of = {
        kind: sum(count for (label, _), count in counts.items() if label == kind)
        for kind in ("update", "same", "different")
    }
    return [
        f"{counts['update', 'both']} of {of['update']}",
        f"{counts['same', 'both']} of {of['same']}",
        f"{counts['different', 'lost'] + counts['different', 'one']} of {of['different']}",
    ]


def measure_mem0(
    python: str, stored: list[Told], calls: list[Told], queries: list[dict[str, str]]
) -> dict[str, Any]:
    roles = {"agent": "assistant", "caller": "user"}
    work = {
        "calls": [
            {
                "caller": told.call.caller,
                "facts": [draft.text for draft in told.drafts],
                "messages": [
                    {"role": roles[turn.speaker], "content": turn.text}
                    for turn in told.call.turns
                ],
            }
            for told in calls
        ],
        "queries": queries,
        "pairs": read_pairs(),
        "stored": [
            (told.call.caller, draft.text) for told in stored for draft in told.drafts
        ],
    }
    side = subprocess.run(
        [python, str(SIDE)],
        input=json.dumps(work),
        capture_output=True,
        text=True,
        check=False,
    )
    if side.returncode:
        raise SystemExit(
            f"mem0 could not be measured: {side.stderr.strip().splitlines()[-1:]}"
        )
    measured: dict[str, Any] = json.loads(side.stdout.strip().splitlines()[-1])
    return measured


def make_python(folder: Path) -> str:
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", *PACKAGES], check=True)
    return python


def rate(measured: dict[str, Any], place: int, since: float = 0.0) -> float:
    """Facts a second (1) or a CPU second (2), of all calls or of the last."""
    some = measured["taken"][int(len(measured["taken"]) * since) :]
    return float(sum(part[0] for part in some) / sum(part[place] for part in some))


def row(name: str, measured: dict[str, Any], queries: int) -> list[str]:
    added = sum(part[0] for part in measured["taken"])
    if not added or measured["found"] < queries * 0.9:
        raise SystemExit(
            f"{name}: {added} added, {measured['found']} of {queries} queries found "
            "something; nothing is compared"
        )
    times = [1000 * value for value in measured["times"]]
    rates = [
        f"{value:,.0f}"
        for value in (
            rate(measured, 1),
            rate(measured, 2),
            rate(measured, 1, LAST),
            rate(measured, 2, LAST),
        )
    ]
    return [
        name,
        f"{added:,}",
        *rates,
        f"{percentile(times, 0.5):.2f}",
        f"{percentile(times, 0.95):.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--callers", type=int, default=30)
    parser.add_argument(
        "--stored",
        type=int,
        default=10_000,
        help="facts of other callers that are there before; not timed",
    )
    parser.add_argument(
        "--mem0-python", default="", help="a Python that has mem0ai and qdrant-client"
    )
    arguments = parser.parse_args()
    calls, stored = make_calls(arguments.callers), make_stored(arguments.stored)
    queries = make_queries(calls)
    queries = queries[:: max(1, len(queries) // QUERIES)]
    with tempfile.TemporaryDirectory(prefix="aftercall-bench-") as folder:
        python = arguments.mem0_python or make_python(Path(folder) / "mem0")
        theirs = measure_mem0(python, stored, calls, queries)
        ours = measure_ours(Path(folder) / "home", stored, calls, queries)
    said = sum(len(told.drafts) for told in calls)
    columns = [
        "",
        "facts",
        "facts/s",
        "per CPU s",
        "facts/s at the end",
        "per CPU s at the end",
        "search p50 ms",
        "p95 ms",
    ]
    before = sum(len(told.drafts) for told in stored)
    title = (
        f"{said:,} facts in {len(calls)} calls of {arguments.callers} callers beside "
        f"{before:,} stored; the end is the last quarter"
    )
    print_table(
        title,
        columns,
        [row("ours", ours, len(queries)), row("mem0", theirs, len(queries))],
    )
    print_table(
        "Two facts of one caller in a stranger's words: believed and undisputed afterwards",
        ["", "update, both kept", "repetition, both kept", "different, not both kept"],
        [["ours", *count_kept(ours)], ["mem0", *count_kept(theirs)]],
    )
    for name, place in (("second", 1), ("CPU second", 2)):
        ratio = rate(ours, place, LAST) / rate(theirs, place, LAST)
        print(
            f"At the end ours takes in {ratio:.1f} times as many facts a {name}; aim ≥ 50: "
            f"{met(ratio >= 50)}"
        )
    print(
        f"Search p50: {percentile(theirs['times'], 0.5) / percentile(ours['times'], 0.5):.0f} "
        "times as fast"
    )


if __name__ == "__main__":
    main()
