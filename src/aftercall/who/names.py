"""Compares given names: short forms, spellings that sound alike, parts of a full name."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

from aftercall.llm.rules.vocabulary import vocabulary
from aftercall.model.people import MAX_PERSON_CHARS

# A given name and its short forms. A short form may belong to several names.
_SHORT_FORMS = """
abigail: abby abbie gail
albert: al bert bertie
alexander: alex al lex sandy xander sasha alec
alexandra: alex sandra sandy lexi sasha ali
alfred: al alf alfie fred
amanda: mandy
andrea: andy andie
andrew: andy drew
anthony: tony ant
antonia: toni
barbara: barb babs barbie
benjamin: ben benny benji
bernard: bernie
catherine: cathy cath cat kate katie kathy kit kitty
charles: charlie chuck chas chaz
charlotte: charlie lottie lotte
christina: chris chrissie tina
christine: chris chrissie tina
christopher: chris kit topher
cynthia: cindy
daniel: dan danny
david: dave davy
deborah: debbie deb
dennis: denny
dolores: lola
donald: don donnie
dorothy: dot dottie dolly
edward: ed eddie ted teddy ned
elizabeth: liz lizzie beth betty eliza lisa libby elsie bess betsy
emily: em emmy
eugene: gene
florence: flo florrie
frances: fran frankie fanny
francis: frank frankie fran
franklin: frank
frederick: fred freddie rick
gabriel: gabe
gabriella: gabby ella
geoffrey: geoff
george: georgie
gerald: gerry jerry
gregory: greg
harold: harry hal
harriet: hattie
henry: harry hank hal
herbert: herb bert
isabella: bella izzy isa
jacob: jake
jacqueline: jackie
james: jim jimmy jamie jem
janet: jan
jeffrey: jeff
jennifer: jen jenny
jessica: jess jessie
joanna: jo joanie
john: jack johnny jon
jonathan: jon jonny johnny
joseph: joe joey jo
josephine: jo josie
joshua: josh
judith: judy
julia: julie jules
kathleen: kath kathy kay
kenneth: ken kenny
kimberly: kim
lawrence: larry laurie
leonard: leo len lenny
louis: lou lew
louise: lou
lucille: lucy
madeleine: maddie
margaret: maggie meg peggy marge margie greta daisy rita
martha: patty marty
martin: marty
mary: molly polly mamie
matthew: matt matty
maximilian: max
michael: mike mick mickey micky mikey
michelle: shelly
mildred: millie
natalie: nat
nathaniel: nat nate nathan
nicholas: nick nicky
nicole: nicky nikki
norman: norm
oliver: ollie
pamela: pam
patricia: pat patty trish tricia
patrick: pat paddy
peter: pete
philip: phil pip
priscilla: cilla
rachel: rae
raymond: ray
rebecca: becky becca
richard: rick ricky dick rich richie
robert: bob bobby rob robbie bert
roberta: bobbie robbie
roger: rodge
ronald: ron ronnie
rosemary: rosie rose
samantha: sam sammy
samuel: sam sammy
sebastian: seb bas
sidney: sid
stephanie: steph
stephen: steve stevie
susan: sue susie suzy
suzanne: sue susie suzy
sylvester: sly
terence: terry
theodore: ted teddy theo
theresa: terry tess tessa
thomas: tom tommy
timothy: tim timmy
valerie: val
veronica: ronnie vera
victor: vic
victoria: vicky tori
vincent: vince vinny
virginia: ginny
walter: walt wally
wilhelmina: mina billie
william: bill billy will willy liam
winifred: winnie freda
zachary: zach zack
"""
_TITLES = vocabulary(
    "mr mrs ms miss mister doctor dr professor prof sir madam father sister sergeant captain"
)
_WORD = re.compile(r"[^\W\d_]+(?:['’\-][^\W\d_]+)*")


def _read_forms() -> dict[str, frozenset[str]]:
    """Maps the sound key of each name to the full names it may stand for."""
    forms: defaultdict[str, set[str]] = defaultdict(set)
    for line in _SHORT_FORMS.strip().splitlines():
        full, _, shorts = line.partition(":")
        for name in (full, *shorts.split()):
            forms[_sound_key(name)].add(_sound_key(full))
    return {name: frozenset(fulls) for name, fulls in forms.items()}


def _sound_key(name: str) -> str:
    """One key for spellings that sound alike: Ana and Anna, Jon and John, Stephen and Steven."""
    decomposed = unicodedata.normalize("NFKD", name.casefold())
    folded = "".join(char for char in decomposed if char.isalnum())
    for spelling, sound in (
        ("ph", "f"),
        ("ck", "k"),
        ("v", "f"),
        ("y", "i"),
        ("ie", "i"),
    ):
        folded = folded.replace(spelling, sound)
    folded = re.sub(r"c(?![eih])", "k", folded)
    folded = folded[:1] + folded[1:].replace("h", "")
    return re.sub(r"(.)\1+", r"\1", folded)


_FORMS = _read_forms()


def split_name(name: str) -> list[str]:
    """The words of a name, without titles."""
    return [
        word
        for word in _WORD.findall(name)
        if word.casefold().rstrip(".") not in _TITLES
    ]


def is_same_person(stated: str, known: Iterable[str]) -> bool:
    """True if a person with the known names may have given this one.

    Compares given names: families share the other one.
    """
    given = split_name(stated)[:1]
    others = [part for name in known for part in split_name(name)]
    return not given or any(_is_same_name(given[0], other) for other in others)


def find_person(stated: str, owner: Iterable[str], others: Iterable[str] = ()) -> str:
    """The person at a number: empty for its owner, one of `others`, or a new person."""
    if is_same_person(stated, owner):
        return ""
    known = next((person for person in others if is_same_person(stated, [person])), "")
    return known or make_person_id(stated)


def make_person_id(stated: str) -> str:
    """The given name as part of a party."""
    given = (split_name(stated) or [""])[0].casefold()
    decomposed = unicodedata.normalize("NFKD", given)
    plain = "".join(char for char in decomposed if char.isascii() and char.isalnum())
    return (plain or given.encode().hex())[:MAX_PERSON_CHARS]


def _is_same_name(one: str, other: str) -> bool:
    a, b = _sound_key(one), _sound_key(other)
    return a == b or bool(_FORMS.get(a, frozenset({a})) & _FORMS.get(b, frozenset({b})))
