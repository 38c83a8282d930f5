"""Measures search on a user's own questions: how much of what was expected it finds, at what cost.

A file has one question a line:

    {"question": "when is the dentist", "caller": "+15550100", "expects": [{"text": "dentist"}]}
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, quantiles

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from aftercall.errors import RefusedInput
from aftercall.memory.words import to_terms
from aftercall.model.passages import Passage, SearchHit


class ExpectedPassage(BaseModel):
    """A fact by its id, a turn by call and number, a whole call, or any passage by its words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fact: str | None = None
    call: str | None = None
    turn: int | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _names_something(self) -> "ExpectedPassage":
        named = [name for name in (self.fact, self.call, self.text) if name]
        if len(named) != 1 or (self.turn is not None and not self.call):
            raise ValueError("name a fact, a call with a turn, or words of the text")
        if self.text and not to_terms(self.text):
            raise ValueError("text has no words")
        return self

    def matches(self, passage: Passage) -> bool:
        if self.text:
            return f" {to_terms(self.text)} " in f" {to_terms(passage.text)} "
        if self.fact:
            return passage.ref == self.fact
        return passage.call_id == self.call and self.turn in (None, passage.seq)


class EvalQuestion(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

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
    find: Callable[[EvalQuestion], Sequence[SearchHit]],
) -> EvalReport:
    scores = []
    for question in questions:
        begun, burnt = time.perf_counter(), time.thread_time()
        hits = find(question)
        elapsed_ms = (time.perf_counter() - begun) * 1000
        cpu_ms = (time.thread_time() - burnt) * 1000
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
