"""`aftercall search`, and `aftercall memory eval`, which measures it on a user's own questions.

A file of questions has one a line:

    {"question": "when is the dentist", "caller": "+15550100", "expects": [{"text": "dentist"}]}
"""

import time as timing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aftercall.cli.context import (
    JSON_OPTION,
    format_time,
    get_cli_context,
    print_json,
    print_line,
)
from aftercall.errors import RefusedInput
from aftercall.model.people import read_party

if TYPE_CHECKING:
    from aftercall.model.passages import Passage, SearchHit
    from aftercall.stores import Stores


class PassageKind(StrEnum):
    turn = "turn"
    summary = "summary"
    fact = "fact"


def search(
    context: typer.Context,
    query: str = typer.Argument(
        metavar="QUERY", help='Any words; "quoted words" must stand side by side.'
    ),
    caller: str = typer.Option(
        "", help="Only this caller's memory; all callers' if unset."
    ),
    kind: list[PassageKind] = typer.Option(
        [], help="Only turns, summaries or facts; may be repeated."
    ),
    as_of: datetime | None = typer.Option(
        None, formats=["%Y-%m-%d"], help="What was known at the end of that day."
    ),
    limit: int = typer.Option(10, min=1, max=40, help="How many, best first."),
    json: bool = JSON_OPTION,
) -> None:
    """Search turns, summaries and facts, best first."""
    from aftercall.memory.fact_store import hit_json

    cli = get_cli_context(context)
    zone = cli.config.settings.zone
    number = _read_searched_caller(caller, "--caller")
    until = datetime.combine(as_of.date(), time.max, zone) if as_of else None
    kinds = tuple(one.value for one in kind)
    with cli.open_stores(reads_rows_only=True) as stores:
        hits = _find(stores, query, number, limit, kinds=kinds, as_of=until)
    if json:
        print_json([hit_json(hit) for hit in hits])
        return
    if not hits:
        print_line("Nothing found.")
    for hit in hits:
        _print_hit(hit, format_time(hit.passage.at, zone))


def evaluate(
    context: typer.Context,
    path: Path = typer.Argument(
        metavar="PATH", help="Your questions, one JSON object a line."
    ),
    limit: int = typer.Option(10, min=1, max=40, help="How many hits count."),
    json: bool = JSON_OPTION,
) -> None:
    """Measure search on your own questions: recall, mean reciprocal rank, and cost.

    A line is {"question": …, "caller": …, "expects": […]}. What is expected is a fact
    {"fact": ID}, a turn {"call": ID, "turn": N}, or words of a passage {"text": …}.
    """
    cli = get_cli_context(context)
    questions = read_questions(path)
    with cli.open_stores(reads_rows_only=True) as stores:

        def find(question: EvalQuestion) -> "list[SearchHit]":
            number = _read_searched_caller(question.caller or "", "caller")
            return _find(stores, question.question, number, limit)

        report = evaluate_search(questions, find).to_json()
    if json:
        print_json(report)
        return
    for name, value in report.items():
        print_line(f"{name.replace('_', ' '):<15} {value}")


class ExpectedPassage(BaseModel):
    """A fact by its id, a turn by call and number, a whole call, or any passage by its words."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    fact: str | None = None
    call: str | None = None
    turn: int | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _names_something(self) -> "ExpectedPassage":
        from aftercall.memory.words import to_terms

        named = [name for name in (self.fact, self.call, self.text) if name]
        if len(named) != 1 or (self.turn is not None and not self.call):
            raise ValueError("name a fact, a call with a turn, or words of the text")
        if self.text and not to_terms(self.text):
            raise ValueError("text has no words")
        return self

    def matches(self, passage: "Passage") -> bool:
        from aftercall.memory.words import to_terms

        if self.text:
            return f" {to_terms(self.text)} " in f" {to_terms(passage.text)} "
        if self.fact:
            return passage.ref == self.fact
        return passage.call_id == self.call and self.turn in (None, passage.seq)


class EvalQuestion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    question: str = Field(min_length=1)
    caller: str | None = None
    """Whose memory is asked; without it, that of all callers."""
    expects: tuple[ExpectedPassage, ...] = Field(min_length=1)


@dataclass(frozen=True)
class QuestionScore:
    recall: float
    """The share of the expected passages among the hits."""
    reciprocal_rank: float
    elapsed_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class EvalReport:
    scores: tuple[QuestionScore, ...]

    def to_json(self) -> dict[str, object]:
        from statistics import fmean, quantiles

        elapsed = [score.elapsed_ms for score in self.scores]
        p95 = quantiles(elapsed, n=20)[-1] if len(elapsed) > 1 else elapsed[0]
        return {
            "questions": len(self.scores),
            "recall": round(fmean(score.recall for score in self.scores), 4),
            "mrr": round(fmean(score.reciprocal_rank for score in self.scores), 4),
            "elapsed_p95_ms": round(p95, 2),
            "cpu_ms": round(fmean(score.cpu_ms for score in self.scores), 2),
            "missed_lines": [
                line for line, score in enumerate(self.scores, 1) if score.recall < 1
            ],
        }


def read_questions(path: Path) -> list[EvalQuestion]:
    """Raises RefusedInput with the line that does not fit; never with its words."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise RefusedInput(
            str(path), f"cannot be read ({type(error).__name__})"
        ) from None
    questions = []
    for number, line in enumerate(lines, 1):
        try:
            questions.append(EvalQuestion.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "the line"
            raise RefusedInput(
                f"{path}, line {number}", f"{field}: {first['msg']}"
            ) from None
    if not questions:
        raise RefusedInput(str(path), "has no questions; write one JSON object a line")
    return questions


def evaluate_search(
    questions: Sequence[EvalQuestion],
    find: "Callable[[EvalQuestion], Sequence[SearchHit]]",
) -> EvalReport:
    scores = []
    for question in questions:
        begun = timing.perf_counter()
        burnt = timing.thread_time()
        hits = find(question)
        elapsed_ms = (timing.perf_counter() - begun) * 1000
        cpu_ms = (timing.thread_time() - burnt) * 1000
        found = [hit.passage for hit in hits]
        ranks = [
            next((rank for rank, one in enumerate(found, 1) if wanted.matches(one)), 0)
            for wanted in question.expects
        ]
        seen = [rank for rank in ranks if rank]
        scores.append(
            QuestionScore(
                recall=len(seen) / len(ranks),
                reciprocal_rank=1 / min(seen) if seen else 0.0,
                elapsed_ms=elapsed_ms,
                cpu_ms=cpu_ms,
            )
        )
    return EvalReport(tuple(scores))


def _read_searched_caller(caller: str, field: str) -> str | None:
    number = read_party(caller, field)
    if caller and number is None:
        raise RefusedInput(
            field, "is withheld; withheld calls have no caller to search by"
        )
    return number


def _find(
    stores: "Stores", query: str, number: str | None, limit: int, **only: Any
) -> "list[SearchHit]":
    from aftercall.memory.search import make_search_scope
    from aftercall.workspace.identity_md import map_speaker_names

    scope = replace(make_search_scope(stores.settings, number), **only)
    names = map_speaker_names(stores.settings, number)
    return stores.search.find(query, scope, limit=limit, speaker_names=names)


def _print_hit(hit: "SearchHit", at: str) -> None:
    """A hit between the turns around it, which are dim."""
    found = hit.passage
    what = " ".join(filter(None, (found.category, found.kind)))
    if found.kind == "turn":
        what = f"{found.speaker}, turn {found.seq}"
    caller = found.caller or "withheld"
    where = found.ref or found.call_id or ""
    print_line((f"{at}  {found.agent_id}  {caller}  {what}  {where}", "dim"))
    for turn in hit.before:
        print_line((f"  {turn.text}", "dim"))
    print_line(f"  {found.text}")
    for turn in hit.after:
        print_line((f"  {turn.text}", "dim"))
