"""Subject, attribute and value of a plain sentence, where they can be told.

One reading for all attributes: a noun phrase, a verb, a value. Whatever can be known of the caller
can be known of anybody. What is not read here has no attribute: two such sentences may both hold.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from aftercall.english.words import by_form, is_descriptive, vocabulary, word_class
from aftercall.memory.subject import CALLER, TITLES, Subject, find_role, name_subject

MAX_PHRASE_WORDS = 8
MAX_NAME_WORDS = 3
MAX_AGE_FIGURES = 5  # more are a phone number
# Verbs that give an attribute, and the words that may lead to its value.
_ACTIONS = by_form(
    {
        "residence": "live lives living reside resides based stay stays moved relocated",
        "employer": "work works working employed started job",
        "bank": "bank banks",
        "car": "drive drives driving",
        "birthday": "born",
    }
)
_LEADS = {
    "residence": vocabulary("in at to near outside into on"),
    "employer": vocabulary("at for with by"),
    "bank": vocabulary("with"),
    "car": vocabulary("a an the my"),
    "birthday": vocabulary("in on the"),
}
_BE = vocabulary(
    "is are am become became becomes went gone turned got should changed runs"
)
_AUXILIARIES = _BE | vocabulary("has have had been be being getting getting to will")
_VERBS = frozenset((*_ACTIONS, *_AUXILIARIES)) | vocabulary(
    """
    was were do does did can could would may might must prefer prefers like likes love loves want
    wants need needs eat eats drink drinks take takes use uses pay pays choose chooses used says
    said thinks told plays play smokes runs comes come came started finishes finish suits suit left
    opens open closes close starts start ends end goes go gets get costs cost weighs weigh
    """
)
_PARTICIPLES = vocabulary(
    """
    started moved relocated living based working employed driving gone got become turned retired
    married engaged divorced separated widowed single been getting
    """
)
_ADVERBS = vocabulary("now recently only finally since then both he she they it")
_OPENINGS = vocabulary(
    "and but sorry no hello hi then now remember note because hey thanks correction update"
)
_SMALL = vocabulary(
    """
    i my the a an this that these those there here what when where who why how which whose your you
    if as so or not never to by with for on at in of from off up down out over about after before
    until till during near every each all any some most one today tomorrow yesterday tonight please
    just also too again still instead rather better best same only other another he she they it him
    her them his their its someone everyone nobody
    """
)
_ASKS = vocabulary(
    "call ring phone reach text contact email send put take leave let remember"
)
_PHRASE_ENDS = _VERBS | _ADVERBS
_BEFORE_VALUE = _AUXILIARIES | _ADVERBS
_AFTER_VERB = _ADVERBS | vocabulary("over back house home")
_NO_NAMES = _SMALL | _ASKS | {""}
_JOINS = vocabulary("for of to on at in the my from")
_WHICH = vocabulary("best other only same")
_STOPS = vocabulary(
    "and but because since so not which with if unless rather instead when where who as now for"
)
_CASES = vocabulary("for if when unless during on from")
_DROPPED = TITLES | vocabulary(
    "a an the my again on in at to from of called named only nearly years year old"
)
_NO_CASE = _CASES | _DROPPED | _ADVERBS | _SMALL
_GENERIC = vocabulary(
    "new current own full direct actual number phone telephone contact address name"
)
_HEADS = {"cell": "mobile", "office": "work", "business": "work", "e-mail": "email"}
_HEADS |= {"zip": "postcode", "account": "bank"}
_FOR_A_WHILE = re.compile(
    r"\b(?:in (?:19|20)\d\d|until|till|tonight|today|tomorrow|temporarily|for now|on holiday"
    r"|visiting|during|weekdays|weekends|term time|over (?:christmas|easter|new year|the)"
    r"|(?:this|next|for (?:the|an?|\d+)) (?:\w+ )?"
    r"(?:moment|days?|nights?|weeks?|weekend|months?|while|summer|winter|holidays?))\b"
)
_CODES = vocabulary("pin password passcode passphrase code combination word")
_STATES = vocabulary("error fault status")
# A sentence in the order that is read here.
_APPOSED = re.compile(
    r"^(\w+) (?:that is )?my (\w+) (?:(?:he|she) )?(?=(?:is|has|lives|works)\b)"
)
_WRITTEN = tuple(
    (re.compile(pattern), written)
    for pattern, written in (
        (r" in law\b", "-in-law"),
        (r"^(?:it|that) is (.+?) who is ", r"\1 is "),  # "it's Dr Rao who is my GP"
        (r"^(?:the|that) (\w+) i \w+ is\b", r"my \1 is"),  # "the phone I carry is …"
        (r"\bfrom [\w ]+? (?=to )|\bleft [\w ]+? and ", ""),
        (rf"'s(?= (?:\d|(?:{'|'.join(_PARTICIPLES)})\b))", " is"),
        (r"\bwas born\b", "am born"),
    )
)
_REACH = re.compile(
    r"\b(?:reach|call|ring|phone|text|contact|email) (?P<whom>i|my [\w ]+?|\w+) (?:on|at) "
    r"(?P<value>\+?\d{6,}|\S+@\S+)"
)
_CHOICES = {
    "diet": vocabulary(
        "vegetarian vegan pescatarian keto carnivore omnivore halal kosher gluten-free"
    ),
    "marital status": vocabulary(
        "married remarried divorced single engaged widowed separated"
    ),
    "job": vocabulary(
        """
        nurse teacher doctor driver student pensioner lawyer chef pilot carer plumber engineer
        freelancer contractor electrician accountant dentist designer developer programmer manager
        cleaner cook waiter waitress farmer builder carpenter photographer writer journalist
        architect consultant vet paramedic firefighter receptionist secretary librarian musician
        painter mechanic baker butcher barber hairdresser therapist translator scientist professor
        midwife surgeon coach tutor trainer courier soldier actor singer artist editor analyst
        solicitor barrister judge retired unemployed self-employed
        """
    ),
}
_WAYS = by_form(
    {
        "email": "email emails emailed e-mail",
        "text": "text texts texted sms texting message messages",
        "phone": "call calls calling ring phone phoned phoning telephone",
        "whatsapp": "whatsapp",
        "post": "letter letters post mail",
    }
)
_PARTS = vocabulary("morning afternoon evening weekend")
_HOURS = {form: part for part in _PARTS for form in (part, f"{part}s")}
_KINDS_OF = {
    "seat": re.compile(r"\b(?:window|aisle)\b"),
    "payment": re.compile(
        r"(?<=pay |ays )(?:by |in |with )?(?:card|cash|invoice|debit)\b"
    ),
}
_WISH = re.compile(
    r"\b(?:prefers?|would rather|would like|wants?|best|better|easiest|easier|suits?|instead"
    r"|from now on|can only)\b|^(?:text|call|email|ring|phone|reach) (?:i|my \w+)(?:$| in the | on)"
)
_REPORTS = re.compile(r"\b(?:says|(?<!\bi )said|thinks|told|her|him|them)\b")
_TAKES = re.compile(
    r"\b(?:prefers?|likes?|wants?|rather|takes?|have|has|drinks?|get|book|pays?|sits?)\b"
)
_PLACES = vocabulary("in near on outside to at")


class Statement(NamedTuple):
    """`kinds` tells what the value is made of: number, day, name, choice; empty for a text."""

    subject: Subject
    attribute: str
    value: tuple[str, ...]
    kinds: frozenset[str]
    case: frozenset[str] = frozenset()
    """When or for whom it holds: "… for visitors", "… on trains"."""

    @property
    def key(self) -> str:
        return f"{self.subject}|{self.attribute}"


class NounPhrase(NamedTuple):
    subject: Subject
    head: tuple[str, ...]
    """The thing of theirs that is spoken of; empty if it is they themselves."""
    end: int


class AttributeReader:
    """One sentence. `names` are its words that are written as names, None if nothing is."""

    def __init__(
        self,
        said: str,
        names: frozenset[str] | None,
        find_day: Callable[[str], str | None],
    ) -> None:
        for pattern, written in _WRITTEN:
            said = pattern.sub(written, said)
        self.said = _APPOSED.sub(_name_first, said)
        self.words = self.said.split()
        self.names = names
        self._find_day = find_day
        starts = (at for at, word in enumerate(self.words) if word not in _OPENINGS)
        self.first = next(starts, 0)

    def read(self) -> Statement | None:
        return self._read_sentence() or self._read_reach() or self._read_wish()

    def find_phrase(self) -> NounPhrase | None:
        """Whom or what the sentence opens with, if it can be told."""
        return self._read_phrase(self.first)

    def _read_sentence(self) -> Statement | None:
        phrase = self._read_phrase(self.first)
        if phrase is None:
            return self._read_inverse()
        end = phrase.end
        while self.words[end : end + 1] and self.words[end] in _BEFORE_VALUE:
            end += 1
        rest = self.words[end:]
        is_be = not _BE.isdisjoint(self.words[phrase.end : end])
        at = 1 if rest and rest[0] in _DROPPED else 0
        if rest[at:] and rest[at] in _ACTIONS:
            return self._read_action(phrase, rest[at:])
        is_inverse = rest[:1] in (["my"], ["the"]) and not phrase.head
        if not is_be or not rest or is_inverse:
            return self._read_inverse()
        return self._read_value(phrase, rest)

    def _read_value(self, phrase: NounPhrase, rest: Sequence[str]) -> Statement | None:
        if not phrase.head:
            return self._read_being(phrase.subject, rest)
        if not _STATES.isdisjoint(phrase.head):
            return None
        return self._make(phrase.subject, _name_attribute(phrase.head), rest)

    def _read_action(self, phrase: NounPhrase, rest: Sequence[str]) -> Statement | None:
        attribute = _ACTIONS[rest[0]]
        after = list(rest[1:])
        while after and after[0] in _AFTER_VERB:
            after = after[1:]
        if not after:
            return None
        if phrase.head:  # where a firm is based, it is
            return self._read_value(phrase, after) if attribute == "residence" else None
        if after[0] == "as":
            return self._read_being(phrase.subject, after[1:])
        if attribute != "birthday" and after[0] not in _LEADS[attribute]:
            return None
        value = after[after[0] in _LEADS[attribute] :]
        found = self._make(phrase.subject, attribute, value)
        if found is None or not found.kinds:
            return None
        if attribute != "residence":
            return found
        if _FOR_A_WHILE.search(self.said):
            return None
        is_address = "number" in found.kinds
        return found._replace(attribute="address") if is_address else found

    def _read_being(self, subject: Subject, rest: Sequence[str]) -> Statement | None:
        """What somebody is: an age, a choice, or the name of who holds a role."""
        value = self._cut_value(rest)
        if not value:
            return None
        if value[0].isdecimal():
            return self._read_number(subject, rest, value)
        beginning = value[: 1 if _describes(value[:1]) else 2]
        for name, choices in _CHOICES.items():
            if chosen := choices.intersection(beginning):
                return Statement(subject, name, tuple(chosen), frozenset({"choice"}))
        subject = subject._replace(which=subject.which.removeprefix("new"))
        if not subject.may_be_replaced or subject.name or rest[0] in _PLACES:
            return None
        found = self._make(subject, "name", rest)
        return found if found and "name" in found.kinds else None

    def _read_number(
        self, subject: Subject, rest: Sequence[str], value: Sequence[str]
    ) -> Statement | None:
        """ "I am 43", "I am on 0791555010"; "breakfast is at 8" is neither."""
        if len(value[0]) > MAX_AGE_FIGURES:
            attribute = "phone"
        elif len(value) == 1 and rest[0] not in _PLACES:
            attribute = "age"
        else:
            return None
        return Statement(subject, attribute, (value[0],), frozenset({"number"}))

    def _read_inverse(self) -> Statement | None:
        """ "Lindqvist is my last name", "0791555010 is my number"."""
        words = self.words[self.first :]
        for at in range(1, MAX_NAME_WORDS + 1):
            if words[at : at + 2] in (["is", "my"], ["is", "the"]):
                phrase = self._read_phrase(self.first + at + 1)
                return self._read_value(phrase, words[:at]) if phrase else None
        return None

    def _read_phrase(self, at: int) -> NounPhrase | None:
        """The noun phrase from `at` on, up to the verb."""
        words = self.words
        first, second = [*words[at : at + 2], "", ""][:2]
        if first == "i":
            return NounPhrase(CALLER, (), at + 1)
        is_name = first not in ("my", "the") and (
            first not in ("that", "this") or second == "is"
        )
        if is_name and (first in _NO_NAMES or first[0].isdecimal()):
            return None
        begin = at + (not is_name)
        owner = None
        phrase = list[str]()
        for place in range(begin, min(len(words), begin + MAX_PHRASE_WORDS)):
            word = words[place]
            if phrase and word in _PHRASE_ENDS:
                return self._finish_phrase(phrase, owner, place, is_name=is_name)
            if word.endswith("'s"):
                owner = name_subject([*phrase, word[:-2]], owner, is_name=is_name)
                phrase = []
                is_name = False
            elif word in _SMALL and word not in (_JOINS if phrase else _WHICH):
                return None
            else:
                phrase.append(word)
        if not phrase:
            return None
        return self._finish_phrase(phrase, owner, len(words), is_name=is_name)

    def _finish_phrase(
        self, phrase: list[str], owner: Subject | None, end: int, *, is_name: bool
    ) -> NounPhrase | None:
        roles = [place for place, word in enumerate(phrase) if find_role(word)]
        joins = [place for place, word in enumerate(phrase) if word in _JOINS]
        is_person = bool(roles) and not (joins and joins[0] < roles[0])
        is_thing = (
            len(phrase) > MAX_NAME_WORDS or joins or not _CODES.isdisjoint(phrase)
        )
        if is_person or (is_name and not is_thing):
            return NounPhrase(name_subject(phrase, owner, is_name=is_name), (), end)
        head = tuple(word for word in phrase if word not in _JOINS)
        return NounPhrase(owner or CALLER, head, end) if head else None

    def _make(
        self, subject: Subject, attribute: str, rest: Sequence[str]
    ) -> Statement | None:
        value = self._cut_value(rest)
        if not value:
            return None
        kinds = self._find_kinds(rest, value)
        is_word = not _CODES.isdisjoint(attribute.split()) and not _describes(value[:1])
        if "favourite" in attribute or is_word:
            kinds |= {"choice"}
        if attribute == "employer" and rest[0] == "the" and not kinds:
            kinds |= {"name"}
        if attribute == "birthday":  # "the 2nd of May", "May 2nd"
            value = tuple(
                sorted(re.sub(r"(?<=\d)(?:st|nd|rd|th)$", "", word) for word in value)
            )
        return Statement(subject, attribute, value, kinds, self._find_case(rest))

    def _cut_value(self, rest: Sequence[str]) -> tuple[str, ...]:
        value: list[str] = []
        for at, word in enumerate(rest):
            if (at and word in _STOPS) or (
                value and self._begins_case(word, rest[at + 1 :])
            ):
                break
            if word not in _DROPPED and word not in _ADVERBS:
                value.append(word)
        return tuple(value)

    def _find_case(self, rest: Sequence[str]) -> frozenset[str]:
        """What follows the value: "… for visitors", "… on Saturdays"."""
        for at, word in enumerate(rest):
            if at and self._begins_case(word, rest[at + 1 :]):
                return frozenset(rest[at:]) - _NO_CASE
        return frozenset()

    def _begins_case(self, word: str, after: Sequence[str]) -> bool:
        """ "on Saturdays", "from Leeds"; but "from Monday" is when it begins."""
        if word not in _CASES or not after:
            return False
        return word != "from" or not self._find_day(after[0])

    def _find_kinds(self, rest: Sequence[str], value: Sequence[str]) -> frozenset[str]:
        kinds = set[str]()
        if any(
            letter.isdecimal() or letter == "@" for word in value for letter in word
        ):
            kinds.add("number")
        if any(map(self._find_day, value)):
            kinds.add("day")
        if self._is_name(rest, value):
            kinds.add("place" if rest[0] in _PLACES - {"at"} else "name")
        return frozenset(kinds)

    def _is_name(self, rest: Sequence[str], value: Sequence[str]) -> bool:
        if rest[0] in TITLES or rest[0] in ("called", "named"):
            return True
        if value[0] == "i" or rest[0] == "from" or self._find_day(value[0]):
            return False
        is_opening = rest[0] == self.words[self.first]
        if self.names is not None and not is_opening:
            return not self.names.isdisjoint(value[:1])
        if rest[0] in ("a", "an", "the", "my"):
            return not word_class("makes").isdisjoint(value[:2])
        return not _describes(value[:2])

    def _read_reach(self) -> Statement | None:
        """ "You can reach my sister Ann on 0791555010"."""
        match = _REACH.search(self.said)
        if match is None:
            return None
        whom = match["whom"].split()
        is_name = whom[0] not in ("i", "my")
        subject = (
            CALLER
            if whom == ["i"]
            else name_subject(whom[not is_name :], is_name=is_name)
        )
        attribute = "email" if "@" in match["value"] else "phone"
        return Statement(subject, attribute, (match["value"],), frozenset({"number"}))

    def _read_wish(self) -> Statement | None:
        """What somebody likes best of a kind of which one takes one."""
        found = dict(self._find_wishes())
        if len(found) != 1:
            return None
        ((attribute, values),) = found.items()
        subject = self._find_wisher()
        if subject is None or len(values) != 1:
            return None
        case = re.search(r" (?:on|for|when|if) (?:the )?(\w+)$", self.said)
        is_case = (
            case
            and not find_role(case[1])
            and case[1] not in _SMALL | {*_WAYS, *_HOURS}
        )
        told = frozenset({case[1]}) if case and is_case else frozenset[str]()
        return Statement(subject, attribute, tuple(values), frozenset({"choice"}), told)

    def _find_wishes(self) -> Iterator[tuple[str, set[str]]]:
        said = re.split(
            r"\b(?:not|rather than|instead of|over|before|because|if|when)\b", self.said
        )[0]
        for name, pattern in _KINDS_OF.items():
            if (match := pattern.search(said)) and _TAKES.search(said):
                yield name, {match.group()}
                return
        if not _WISH.search(self.said) or _REPORTS.search(self.said):
            return
        words = said.split()
        if hours := {_HOURS[word] for word in words if word in _HOURS}:
            yield "best time", hours
        elif ways := {_WAYS[word] for word in words if word in _WAYS}:
            yield "contact", ways

    def _find_wisher(self) -> Subject | None:
        """ "my wife prefers …", "… is best for my wife", else the caller if nobody is named."""
        roles = [
            at
            for at, word in enumerate(self.words)
            if find_role(word.removesuffix("'s"))
        ]
        if not roles:
            is_other = self.words[self.first] in ("he", "she", "they") or self.names
            return None if is_other else CALLER
        if len(roles) > 1 or self.words[roles[0]].endswith("'s"):
            return None
        at = roles[0]
        phrase = self._read_phrase(self.first)
        if phrase and phrase.subject.role:
            return phrase.subject if not phrase.head else None
        return name_subject([self.words[at]]) if self.words[at - 1] == "my" else None


def _name_first(apposed: re.Match[str]) -> str:
    """ "Ann, my sister, lives …" is "my sister Ann lives …"."""
    name = apposed[1]
    role = apposed[2]
    is_name = name not in _NO_NAMES | _OPENINGS | _VERBS and find_role(role)
    return f"my {role} {name} " if is_name else apposed[0]


def _name_attribute(head: Sequence[str]) -> str:
    """ "my new mobile phone number" is "mobile", "my number" is "phone"."""
    words = {_HEADS.get(word, word) for word in head}
    if words & {"birth", "dob"}:
        return "birthday"
    if {"last", "name"} <= words or {"family", "name"} <= words:
        return "surname"
    rest = words - _GENERIC
    if not rest:
        kinds = words & {"address", "name"}
        return kinds.pop() if kinds else "phone"
    if "address" in words and "email" not in words:
        rest.add("address")
    return " ".join(sorted(rest))


def _describes(words: Sequence[str]) -> bool:
    return any(map(is_descriptive, words))
