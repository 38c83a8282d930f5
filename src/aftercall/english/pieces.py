"""Long turns in pieces, so that the time of a pattern stays in proportion to the text."""

import re
from collections.abc import Iterable, Iterator

from aftercall.model.turns import Turn

MAX_PIECE_CHARS = 1_200  # more than a minute of speech
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)]*\s|\n")


def cut_text(text: str, max_chars: int = MAX_PIECE_CHARS) -> list[str]:
    """The text in verbatim pieces, cut after a sentence, else after a space, else anywhere."""
    pieces = []
    start = 0
    while len(text) - start > max_chars:
        end = start + _find_cut(text[start : start + max_chars])
        pieces.append(text[start:end])
        start = end
    return [*pieces, text[start:]]


def _find_cut(piece: str) -> int:
    """In the second half, so that pieces do not get short."""
    half = len(piece) // 2
    ends = [match.end() for match in _SENTENCE_END.finditer(piece, half)]
    space = piece.rfind(" ", half) + 1
    return ends[-1] if ends else space or len(piece)


def cut_turns(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Each turn, or its pieces under the same number."""
    for turn in turns:
        for piece in cut_text(turn.text):
            is_whole = len(piece) == len(turn.text)
            yield turn if is_whole else turn.model_copy(update={"text": piece})
