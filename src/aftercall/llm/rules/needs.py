"""Which words a text must have, one of them at least, for a pattern to match it: read off the pattern's syntax tree."""

from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from aftercall.llm.rules.vocabulary import vocabulary

# Said in almost every sentence, so that a pattern is better told by a further word.
_COMMON = vocabulary(
    "a an and are as at be but can could d do for have he i if in is it just like ll m me my no not of oh on or our re s "
    "she so t that the then they this to ve was we well what will with would yes you your"
)
_FEW = 4  # letters of a class that are followed one by one

PREFIX = 4  # letters by which a word is known whose end may differ


def prefix_of(word: str) -> str:
    return f"{word[:PREFIX]}*"


Said = frozenset[str] | None
Place = tuple[str, bool]
"""The piece of a word that a way through the pattern stands in, and whether that piece began at the border of a word."""


class _Ways:
    """All ways through a pattern up to some place in it: by where each stands, the words of which it has surely said one."""

    def __init__(self, places: dict[Place, Said]) -> None:
        self.places = places

    def put(self, place: Place, said: Said) -> None:
        """Two ways that stand in one place go on alike: together they have said less."""
        known = self.places.get(place, said)
        self.places[place] = None if said is None or known is None else said | known

    def join(self, other: "_Ways") -> "_Ways":
        for place, said in other.places.items():
            self.put(place, said)
        return self

    def letter(self, letter: str) -> "_Ways":
        return _Ways({(piece + letter, clean): said for (piece, clean), said in self.places.items()})

    def border(self) -> "_Ways":
        after = _Ways({})
        for (piece, clean), said in self.places.items():
            after.put(("", True), _better(said, frozenset({piece})) if piece and clean else said)
        return after

    def anything(self) -> "_Ways":
        """Some letter or other: of the word begun, only its first letters are known."""
        after = _Ways({})
        for (piece, clean), said in self.places.items():
            begun = frozenset({prefix_of(piece)}) if clean and len(piece) >= PREFIX else None
            after.put(("", False), _better(said, begun))
        return after

    def copy(self) -> "_Ways":
        return _Ways(dict(self.places))


def _better(first: Said, second: Said) -> Said:
    """Of two sets of words, one of each of which was said, the one that tells more."""
    if first is None or second is None:
        return first or second
    return min(first, second, key=lambda words: (len(words & _COMMON), len(words)))


def needed_words(pattern: str, *, at_start: bool = False) -> frozenset[str] | None:
    """None where the pattern can match a text without any word of its own; `at_start` when it is to match from there."""
    ways = _follow(parser.parse(pattern), _Ways({("", at_start): None})).anything()
    return ways.places["", False]


def _follow(tree: Any, ways: _Ways) -> _Ways:
    for op, value in tree:
        ways = _step(op, value, ways)
    return ways


def _step(op: Any, value: Any, ways: _Ways) -> _Ways:
    if op is ops.LITERAL:
        return _spoken(chr(value), ways)
    if op is ops.BRANCH:
        return _union(_follow(branch, ways) for branch in value[1])
    if op is ops.SUBPATTERN:
        return _follow(value[3], ways)
    if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return _repeat(value, ways)
    if op is ops.AT:
        return ways.border()
    if op is ops.ASSERT and value[0] == 1 and _is_border(value[1]):
        return ways.border()
    if op in (ops.ASSERT, ops.ASSERT_NOT):
        return ways
    return _one_of(value, ways) if op is ops.IN else ways.anything()


def _is_border(tree: Any) -> bool:
    """Whether what comes next is asked to begin with no letter."""
    if not len(tree):
        return False
    op, value = tree[0]
    choices = value if op is ops.IN else [(op, value)]
    return all(kind is ops.LITERAL and not chr(item).isalnum() and chr(item) != "_" for kind, item in choices)


def _union(many: Any) -> _Ways:
    joined = _Ways({})
    for ways in many:
        joined.join(ways)
    return joined


def _spoken(letter: str, ways: _Ways) -> _Ways:
    return ways.letter(letter.lower()) if letter.isalnum() or letter == "_" else ways.border()


def _repeat(value: tuple[int, int, Any], ways: _Ways) -> _Ways:
    """What is said more than once is followed once, and then could stand anywhere unless it ended at a border."""
    least, most, tree = value
    once = _follow(tree, ways)
    if most > 1:
        ends = _Ways({})
        for (piece, clean), said in once.places.items():
            ends.put(("", clean and not piece), said)
        once = ends
    return once if least else once.copy().join(ways)


def _one_of(choices: Any, ways: _Ways) -> _Ways:
    letters = [chr(value) for op, value in choices if op is ops.LITERAL]
    if len(letters) == len(choices) and len(letters) <= _FEW:
        return _union(_spoken(letter, ways) for letter in letters)
    borders = (ops.CATEGORY_SPACE, ops.CATEGORY_NOT_WORD)
    if all((op is ops.LITERAL and not chr(value).isalnum()) or (op is ops.CATEGORY and value in borders) for op, value in choices):
        return ways.border()
    return ways.anything()
