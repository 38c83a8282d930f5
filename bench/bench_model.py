"""How well a model on your own server reads labelled calls, beside the rules and with them.

    python bench/bench_model.py http://127.0.0.1:8081/v1 qwen2.5-coder-1.5b
    python bench/bench_model.py ADDRESS MODEL --calls 12 --without-alone PATH …

Reads the calls of `bench/calls` that nobody wrote rules for (Y and Z) by rules, by the model
alone, and by the rules with the model's checks. A small model takes minutes a call alone:
`--calls` reads the first few, `--without-alone` leaves that column out. Every column has the same
calls; one that could not be read is counted as failed and is in no figure.
"""

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC
from itertools import chain
from pathlib import Path

from aftercall.compose import choose_reader, make_model_client
from aftercall.config import load_config
from aftercall.evaluation import FIGURES, ReaderResult, evaluate_reader
from aftercall.labels import LabelledCall, read_labels
from aftercall.llm.rules.reader import RulesReader
from tables import print_table

FOLDER = Path(__file__).parent / "calls"
MAX_TOKENS = 600
TIMEOUT_S = 600


def list_unmet() -> list[str]:
    """Y and Z in turns, so that the first few are of both hands."""
    hands = [sorted(map(str, FOLDER.glob(f"{hand}*.json"))) for hand in "YZ"]
    return list(chain(*zip(*hands, strict=True)))


def show_progress(name: str, labelled: list[LabelledCall]) -> Iterator[LabelledCall]:
    for number, item in enumerate(labelled, 1):
        print(f"{name}: {number} of {len(labelled)}", file=sys.stderr)
        yield item


def measure(name: str, address: str, labelled: list[LabelledCall]) -> ReaderResult:
    environment = {
        "AFTERCALL_MODEL": name,
        "OPENAI_BASE_URL": address,
        "AFTERCALL_READING_TIMEOUT_S": str(TIMEOUT_S),
        "AFTERCALL_READING_MAX_TOKENS": str(MAX_TOKENS),
    }
    client = make_model_client(load_config(environ=environment).settings)
    try:
        reader = choose_reader(client, RulesReader(), UTC)
        return evaluate_reader(reader, show_progress(name, labelled))
    finally:
        if client:
            client.close()


def print_results(results: list[ReaderResult]) -> None:
    rows = []
    for name in FIGURES:
        figures = [
            next(figure for figure in result.figures if figure.name == name)
            for result in results
        ]
        cells = [
            f"{figure.share:.2f}  {figure.right} of {len(figure.items)}"
            if figure.items
            else "nothing found"
            for figure in figures
        ]
        rows.append([name, *cells])
    counts = [result.calls + len(result.failed) for result in results]
    pairs = list(zip(results, counts, strict=True))
    rows += [
        ["calls failed", *(str(len(result.failed)) for result in results)],
        ["tokens in, a call", *(f"{one.input_tokens / n:.0f}" for one, n in pairs)],
        ["tokens out, a call", *(f"{one.output_tokens / n:.0f}" for one, n in pairs)],
        ["seconds a call", *(f"{one.seconds / n:.1f}" for one, n in pairs)],
    ]
    heads = ["rules" if one.reader == "rules" else "model alone" for one in results]
    heads = [
        "rules + model" if one.reader.startswith("rules+") else head
        for one, head in zip(results, heads, strict=True)
    ]
    print_table(f"Readers on {counts[0]} labelled calls", ["", *heads], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address", help="of the server, with /v1")
    parser.add_argument("model", help="its name there")
    parser.add_argument("paths", nargs="*", help="labelled calls; Y and Z if none")
    parser.add_argument("--calls", type=int, default=None, help="only the first few")
    parser.add_argument("--without-alone", action="store_true")
    given = parser.parse_intermixed_args()
    labelled = list(read_labels(given.paths or list_unmet()))[: given.calls]
    model = f"openai-compatible:{given.model}"
    names = ["rules", f"rules+{model}"]
    if not given.without_alone:
        names.insert(1, model)
    print_results([measure(name, given.address, labelled) for name in names])


if __name__ == "__main__":
    main()
