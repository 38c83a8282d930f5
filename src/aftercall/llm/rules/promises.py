"""What the agent said it, or its company, would do after the call. Only where it names a deed."""

import itertools
from collections.abc import Iterable, Iterator

from aftercall.english.clauses import split_plain_sentences
from aftercall.english.stems import jaccard_similarity, overlap_coefficient, stems
from aftercall.english.text import Plain, normalise
from aftercall.english.words import compile_pattern, load_patterns
from aftercall.llm.rules.titles import title_of
from aftercall.model.reading import Promise
from aftercall.model.turns import Turn

_PATTERNS = load_patterns("aftercall.llm.rules", "promises")

_PROMISES = _PATTERNS["promises"]
_SPLIT = _PATTERNS["split"]
# Said in passing: it binds nobody after the call.
_IDLE = _PATTERNS["idle"]
_POINTS = compile_pattern(
    r"\S+(?: \S+)? (?:it|that|them|this|those)(?: .*)?|\S+ (?:have|get) it"
)
_CONDITION = _PATTERNS["condition"]
_OWN = ("i", "we", "you")


def find_promises(
    turns: Iterable[Turn], withdrawn: Iterable[frozenset[str]]
) -> list[Promise]:
    """From the agent's turns; a promise repeated is one, and one called off is none."""
    called_off = list(withdrawn)
    promises: list[Promise] = []
    for turn in turns:
        if turn.speaker != "agent":
            continue
        before = ""
        for sentence in split_plain_sentences(normalise(turn.text)):
            for words, deed in _deeds(sentence):
                title = title_of(deed)
                if before and _POINTS.fullmatch(deed.text):
                    title = f"{title}: {before}"
                promise = Promise(title=title, turns=(turn.seq,), words=words.cited)
                if (
                    title
                    and not _is_known(promise, promises)
                    and not any(
                        overlap_coefficient(stems(title), about) >= 0.6
                        for about in called_off
                    )
                ):
                    promises.append(promise)
            before = "" if sentence.ends_with == "?" else sentence.said
    return promises


def _deeds(sentence: Plain) -> Iterator[tuple[Plain, Plain]]:
    """The words of each promise, and its deed with who does it if that is somebody else."""
    if sentence.ends_with == "?" or _CONDITION.search(sentence.text):
        return
    bounds = [
        0,
        *(match.start() for match in _SPLIT.finditer(sentence.text)),
        len(sentence.text),
    ]
    for start, end in itertools.pairwise(bounds):
        piece = sentence.between(start, end)
        match = _PROMISES.search(piece.text)
        if not match or _IDLE.fullmatch(match["what"]):
            continue
        who = match["who"].split()[0]
        first = match.start("what") if who in _OWN else match.start()
        yield piece.after(match.start()), piece.after(first)


def _is_known(promise: Promise, earlier: list[Promise]) -> bool:
    about = stems(promise.words)
    return any(
        jaccard_similarity(about, stems(other.words)) >= 0.75
        and promise.turns != other.turns
        for other in earlier
    )
