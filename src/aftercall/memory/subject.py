"""Of whom or of what something is said, and whether two sentences can mean the same one.

In doubt two are not one: a fact kept twice is a lesser harm than one that was retired for
somebody else's.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from aftercall.english.words import by_form, vocabulary

Kinship = Literal["same", "maybe", "other"]

PERSONS = vocabulary(
    """
    wife husband partner spouse fiance fiancee girlfriend boyfriend son daughter boy girl mother father parents brother sister sibling
    twin aunt auntie uncle cousin nephew niece grandmother grandfather grandma grandpa granny gran nan nana grandad granddad grandparents
    grandson granddaughter grandchild godmother godfather godson goddaughter stepmother stepfather stepmum stepdad stepson stepdaughter
    stepbrother stepsister stepchild child baby children friend mate colleague coworker boss manager assistant secretary client customer
    tenant landlord landlady lodger neighbour neighbor roommate flatmate housemate carer nanny childminder babysitter au-pair cleaner
    gardener doctor dentist vet therapist physio physiotherapist lawyer solicitor accountant plumber electrician builder teacher tutor
    coach trainer agent driver nurse midwife consultant surgeon hairdresser barber student pupil ex ex-wife ex-husband dog cat horse pony
    puppy kitten eldest youngest oldest middle half lad lass bloke pal guardian executor
    """
)
# Of these there is one at a time: "my wife" and "my wife Ana" are the same.
_ONE = vocabulary(
    "wife husband partner spouse fiance fiancee girlfriend boyfriend mother father parents "
    "landlord landlady boss"
)
_SPELLED = by_form(
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
        "sister": "sis",
        "brother": "bro",
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
_TITLES = vocabulary("dr doctor mr mrs ms miss prof professor")
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
    def is_person(self) -> bool:
        return not self.role or is_person(self.role)

    @property
    def is_one_of_its_kind(self) -> bool:
        return self.role.removesuffix(_IN_LAW) in _ONE and not self.which


CALLER = Subject()


def is_person(word: str) -> bool:
    return _SPELLED.get(word, word).removesuffix(_IN_LAW) in PERSONS


def name_subject(
    phrase: Sequence[str], owner: Subject | None = None, *, is_name: bool = False
) -> Subject:
    """From "elder sister ann", "leeds office", or a bare "ann smith" (`is_name`)."""
    words = [_SPELLED.get(word, word) for word in phrase]
    at = next(
        (
            place
            for place, word in enumerate(words)
            if word.removesuffix(_IN_LAW) in PERSONS
        ),
        None,
    )
    named = [word for word in words if word not in _TITLES]
    if is_name and named and (at is None or words[at] in _TITLES or at):
        return Subject(name=tuple(named), owner=owner)
    if at is None:
        return Subject(
            role=" ".join(word for word in words if word not in _FOND), owner=owner
        )
    after = [word for word in words[at + 1 :] if word not in _TITLES]
    linked = next(
        (place for place, word in enumerate(after) if word in LINKS), len(after)
    )
    which = [*(word for word in words[:at] if word not in _FOND), *after[linked:]]
    return Subject(words[at], tuple(after[:linked]), " ".join(which), owner)


LINKS = vocabulary("in from at of")
"""Words that tell which one: "my aunt in Cork"."""


def relate(mine: Subject, theirs: Subject) -> Kinship:
    """`maybe` where one of them tells less than the other, and nothing speaks against it."""
    if mine == theirs:
        return "same"
    if CALLER in (mine, theirs) or (mine.owner is None) != (theirs.owner is None):
        return "other"
    owners: Kinship = (
        relate(mine.owner, theirs.owner) if mine.owner and theirs.owner else "same"
    )
    here = _relate_alone(mine, theirs)
    if "other" in (owners, here):
        return "other"
    return "same" if owners == here == "same" else "maybe"


def _relate_alone(mine: Subject, theirs: Subject) -> Kinship:
    named = mine.name and theirs.name
    if named and not _is_one_name(mine.name, theirs.name):
        return "other"
    if mine.role != theirs.role:
        # "Ann" may be my sister Ann; that "Ann" is my sister cannot be told from "my
        # sister"
        return (
            "maybe"
            if named and mine.name == theirs.name and "" in (mine.role, theirs.role)
            else "other"
        )
    if mine.which != theirs.which:
        told = mine.which or theirs.which
        return (
            "same"
            if named and "" in (mine.which, theirs.which) and told not in _CONTRASTS
            else "other"
        )
    return (
        "same"
        if bool(mine.name) == bool(theirs.name) or mine.is_one_of_its_kind
        else "maybe"
    )


def _is_one_name(mine: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """ "Ann" and "Ann Smith"."""
    short, long = sorted((mine, theirs), key=len)
    return long[: len(short)] == short
