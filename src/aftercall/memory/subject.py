"""Of whom something is said, and whether two sentences can mean the same one.

In doubt two are not one: a fact kept twice is a lesser harm than one that was retired for
somebody else's.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from aftercall.english.words import by_form, vocabulary

Kinship = Literal["same", "maybe", "other"]

# Of these there is one at a time: "my wife" and "my wife Ana" are the same.
_ONE = vocabulary(
    """
    wife husband partner spouse fiance fiancee girlfriend boyfriend mother father parents landlord
    landlady boss
    """
)
# Who holds one of these roles may be replaced by another.
_HELD = _ONE | vocabulary(
    """
    manager assistant secretary tenant lodger roommate flatmate carer nanny childminder cleaner
    gardener doctor dentist vet therapist physio physiotherapist lawyer solicitor accountant plumber
    electrician builder teacher tutor coach trainer agent driver nurse midwife consultant surgeon
    hairdresser barber guardian executor chef receptionist caretaker
    """
)
PERSONS = _HELD | vocabulary(
    """
    son daughter brother sister sibling twin aunt uncle cousin nephew niece grandmother grandfather
    grandparents grandson granddaughter grandchild godmother godfather godson goddaughter stepmother
    stepfather stepmum stepdad stepson stepdaughter stepbrother stepsister stepchild child baby
    children friend mate colleague client customer neighbour housemate babysitter student pupil ex
    ex-wife ex-husband dog cat horse pony puppy kitten eldest youngest oldest middle half lad lass
    bloke pal
    """
)
SPELLED = by_form(
    {
        "mother": "mum mom mam mama mummy mommy",
        "father": "dad daddy papa",
        "grandmother": "grandma granny gran nan nana",
        "grandfather": "grandpa grandad granddad",
        "aunt": "auntie aunty",
        "neighbour": "neighbor",
        "parents": "folks",
        "wife": "missus",
        "husband": "hubby",
        "child": "kid",
        "children": "kids",
        "doctor": "gp",
        "son": "boy",
        "daughter": "girl",
        "colleague": "coworker",
        "fiance": "fiancé",
        "fiancee": "fiancée",
    }
)
TITLES = vocabulary("dr doctor mr mrs ms miss prof professor")
LINKS = vocabulary("in from at of")
"""Words that tell which one: "my aunt in Cork"."""
_FOND = vocabulary("dear lovely poor darling beloved own very best good")
_CONTRASTS = vocabulary(
    "other another second third new old former previous first last late next"
)
_IN_LAW = "-in-law"


class Subject(NamedTuple):
    """The caller where nothing is told.

    `which` is "elder" or "in cork", `owner` whose husband it is.
    """

    role: str = ""
    name: tuple[str, ...] = ()
    which: str = ""
    owner: "Subject | None" = None

    def __str__(self) -> str:
        if self == CALLER:
            return "caller"
        of = str(self.owner) if self.owner else "caller"
        return " ".join((f"{of}'s", *filter(None, (self.which, self.role)), *self.name))

    @property
    def is_one_of_its_kind(self) -> bool:
        return self.role.removesuffix(_IN_LAW) in _ONE and not self.which

    @property
    def may_be_replaced(self) -> bool:
        return self.role in _HELD


CALLER = Subject()


def find_role(word: str) -> str | None:
    """The role that a word names, in its usual spelling: "mum" is "mother"."""
    role = SPELLED.get(word, word)
    return role if role.removesuffix(_IN_LAW) in PERSONS else None


def name_subject(
    phrase: Sequence[str], owner: Subject | None = None, *, is_name: bool = False
) -> Subject:
    """From "elder sister ann", "leeds office", or a bare "ann smith" (`is_name`)."""
    words = [find_role(word) or word for word in phrase]
    roles = [at for at, word in enumerate(words) if find_role(word)]
    named = tuple(word for word in words if word not in TITLES)
    if is_name and named and (not roles or words[roles[0]] in TITLES or roles[0]):
        return Subject(name=named, owner=owner)
    if not roles:
        return Subject(role=" ".join(_drop_fond(words)), owner=owner)
    at = roles[0]
    after = [word for word in words[at + 1 :] if word not in TITLES]
    end = next((n for n, word in enumerate(after) if word in LINKS), len(after))
    which = [*_drop_fond(words[:at]), *after[end:]]
    return Subject(words[at], tuple(after[:end]), " ".join(which), owner)


def _drop_fond(words: Sequence[str]) -> list[str]:
    return [word for word in words if word not in _FOND]


def relate(mine: Subject, theirs: Subject) -> Kinship:
    """`maybe` where one of them tells less than the other, and nothing speaks against it."""
    if mine == theirs:
        return "same"
    if CALLER in (mine, theirs) or (mine.owner is None) != (theirs.owner is None):
        return "other"
    owners: Kinship = "same"
    if mine.owner and theirs.owner:
        owners = relate(mine.owner, theirs.owner)
    here = _relate_alone(mine, theirs)
    if "other" in (owners, here):
        return "other"
    return "same" if owners == here == "same" else "maybe"


def _relate_alone(mine: Subject, theirs: Subject) -> Kinship:
    named = bool(mine.name and theirs.name)
    if named and not _is_one_name(mine.name, theirs.name):
        return "other"
    if mine.role != theirs.role:
        # "Ann" may be my sister Ann; that "Ann" is my sister cannot be told from "my sister".
        is_bare = named and mine.name == theirs.name and "" in (mine.role, theirs.role)
        return "maybe" if is_bare else "other"
    if mine.which != theirs.which:
        told = mine.which or theirs.which
        is_fuller = named and "" in (mine.which, theirs.which)
        return "same" if is_fuller and told not in _CONTRASTS else "other"
    is_sure = bool(mine.name) == bool(theirs.name) or mine.is_one_of_its_kind
    return "same" if is_sure else "maybe"


def _is_one_name(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """ "Ann" and "Ann Smith"."""
    short, long = sorted((mine, theirs), key=len)
    return long[: len(short)] == short
