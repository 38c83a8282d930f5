"""Which words a text must have, one of them at least, for a pattern to match it: read off the
pattern's syntax tree.
"""

from collections.abc import Iterable

from aftercall.llm.rules.syntax import (
    Border,
    Either,
    Letter,
    Node,
    Repeated,
    Sequence,
    Unreadable,
    read_pattern,
)
from aftercall.llm.rules.vocabulary import vocabulary

# Said in almost every sentence, so that a pattern is better told by a further word.
_COMMON = vocabulary(
    "a an and are as at be but can could d do for have he i if in is it just like ll m me my "
    "no not of oh on or our re s "
    "she so t that the then they this to ve was we well what will with would yes you your"
)
PREFIX = 4  # letters by which a word is known whose end may differ


def prefix_of(word: str) -> str:
    return f"{word[:PREFIX]}*"


Said = frozenset[str] | None
Place = tuple[str, bool]
"""The piece of a word that a way through the pattern stands in, and whether that piece began at
the border of a word.
"""


class _Ways:
    """All ways through a pattern up to some place in it: by where each stands, the words of
    which it has surely said one.
    """

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
        return _Ways(
            {
                (piece + letter, clean): said
                for (piece, clean), said in self.places.items()
            }
        )

    def border(self) -> "_Ways":
        after = _Ways({})
        for (piece, clean), said in self.places.items():
            after.put(
                ("", True),
                _better(said, frozenset({piece})) if piece and clean else said,
            )
        return after

    def anything(self) -> "_Ways":
        """Some letter or other: of the word begun, only its first letters are known."""
        after = _Ways({})
        for (piece, clean), said in self.places.items():
            begun = (
                frozenset({prefix_of(piece)})
                if clean and len(piece) >= PREFIX
                else None
            )
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
    """None where the pattern can match a text without any word of its own; `at_start` when it
    is to match from there.
    """
    try:
        tree = read_pattern(pattern)
    except Unreadable:
        return None
    return _follow(tree, _Ways({("", at_start): None})).anything().places["", False]


def _follow(tree: Sequence, ways: _Ways) -> _Ways:
    for node in tree:
        ways = _step(node, ways)
    return ways


def _step(node: Node, ways: _Ways) -> _Ways:
    match node:
        case Letter(letter):
            return ways.letter(letter)
        case Border():
            return ways.border()
        case Either(branches):
            return _union(_follow(branch, ways) for branch in branches)
        case Repeated():
            return _repeat(node, ways)
    return ways.anything()


def _union(many: Iterable[_Ways]) -> _Ways:
    joined = _Ways({})
    for ways in many:
        joined.join(ways)
    return joined


def _repeat(node: Repeated, ways: _Ways) -> _Ways:
    """What is said more than once is followed once, and then could stand anywhere unless it
    ended at a border.
    """
    once = _follow(node.body, ways)
    if node.may_be_many:
        ends = _Ways({})
        for (piece, clean), said in once.places.items():
            ends.put(("", clean and not piece), said)
        once = ends
    return once.copy().join(ways) if node.may_be_missing else once
