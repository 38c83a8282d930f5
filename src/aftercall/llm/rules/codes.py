"""Codes and passwords a caller says aloud: which run of figures is one, told by the noun that
governs it.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.masking import figures_of
from aftercall.llm.rules.memo import remember
from aftercall.llm.rules.numbers import NUMBER_WORD
from aftercall.llm.rules.sentences import split_sentences

_PLACE_CODE = (
    "(?:security|access|door|gate|entry|entrance|alarm|safe|key|lock ?box|garage|verification"
    "|unlock|building|wifi|wi-fi|router)"
)
SECRET_NOUN = Cue(
    r"\b(?:pin(?: (?:number|code))?|pass ?code|key ?(?:safe|box|pad)|lock ?box|padlock|alarm"
    "|gate|front door|door|to get in|"
    r"(?:press|punch in|type in|key in|dial)(?= \S*\d)|three digits|digits|last (?:four|three"
    "|six)|ends? (?:in|with)|ending(?: in| with)?|"
    f"visa|mastercard|amex|expiry|expires|{_PLACE_CODE} (?:code|number|pin|combination|key)"
    "|combination|cvv|cvc|"
    "(?:credit |debit |bank |visa |mastercard |amex )?cards?(?: number)?"
    "|member(?:ship)?(?:['’]s)?(?: (?:number|id|no|card))?|"
    "(?:bank |account|routing|policy|patient|nhs|medicare|medicaid|insurance|passport"
    "|licen[cs]e|tax|id) (?:account )?(?:number|id|no)|"
    "account|sort code|iban|social(?: security)?(?: number)?|ssn|national insurance|ni number"
    "|(?:customer|client|supporter|donor|"
    "loyalty|rewards|student|employee|staff|subscriber|frequent flyer|pension|hospital) "
    "(?:number|id)|"
    r"(?:api |access |private |secret |live )?key(?= (?:is|starts|begins|ends)\b)|"
    "(?<!error )(?<!fault )(?<!zip )(?<!post )(?<!area )(?<!dress )(?<!promo )(?<!discount "
    ")(?<!voucher )(?<!country )"
    r"(?<!dial )(?<!booking )(?<!reference )(?<!order )(?<!tracking )code|safe)\b",
)
# Nouns whose figures anybody may know; the one nearest to the figures decides.
_PLAIN_NOUN = Cue(
    r"\b(?:phone|mobile|cell|landline|telephone|extension|reach me|call me|ring me|text me"
    "|room|flat|apartment|unit|suite|house|address|"
    "zip|post ?code|order|invoice|ticket|reference|confirmation|tracking|flight|meter|reading"
    "|model|version|serial|part|error|fault|"
    "street|year|since|born|costs?|price|paid|pay|charged?|quoted|bill|limit|budget|balance"
    "|miles|kilomet(?:er|re)s|weighs?|version|aged?|"
    "(?:order|job|case|claim|booking|reservation|po|asset|plate|registration|reg) (?:number"
    r"|id|no|code)|number plate|postcode)\b",
)
_UNIT_AFTER = re.compile(
    r"^\W*(?:o['’]?clock|a\.?m\b|p\.?m\b|pounds?|dollars?|euros?|quid|bucks|people|guests"
    "|percent|degrees|years?|"
    r"months?|weeks?|days?|hours?|"
    "minutes?|miles|square|inch(?:es)?|feet|foot|pupils|copies|of (?:us|them)"
    "|(?-i:[A-Z][a-z]+) (?:street|road|"
    r"avenue|lane|way|drive|court|"
    r"close|row|gardens|hill|place|terrace|grove))\b",
    re.I,
)
# whatever else is named, these own the figures
_STRONG = Cue(r"(?:pin|pass ?code|cvv|cvc|combination)\b")
# "The PIN for the phone line is …": what it is for does not own the figures.
_BESIDES = re.compile(
    r"\b(?:for|on|of|to|in|at|by|with|from) (?:the |my |our |his |her |your |a )?(?:\w+ )?$",
    re.I,
)
_HOUR_BEFORE = re.compile(
    r"\b(?:at|by|until|till|from|before|after|around|about|past|between)\s*$", re.I
)
_TOKEN = rf"(?:{NUMBER_WORD}|\d+|hash|star|left|right|(?-i:[B-HJ-Z])(?![\w'’]))"
_RUN = re.compile(
    rf"\b{_TOKEN}(?:(?:[\s,\-]+|[,]? (?:uh|um|er|then|and then|(?:no,? )?sorry|no,? wait|no"
    rf"|wait,? no|i mean)[, ]+){_TOKEN})*\b",
    re.I,
)
_POINTS = re.compile(
    r"(?:and |um |uh |so |yes |yeah )*(?:it|that|this|mine|they)\b", re.I
)
_BARE_NOUNS = (
    "code",
    "the code",
    "pin",
    "number",
    "digits",
)  # of what, the sentence before may say
_NEAR = 45  # characters between a noun and figures it surely governs
_FEWEST = 3  # figures of a code

PASSWORD = Cue(
    r"\b(?:pass ?words?|pass ?phrase|log ?in|(?:memorable|safe|code|security|secret) (?:word"
    "|answer|phrase)|wi-?fi (?:code|key)|"
    r"security question|maiden name)\b",
)
_SAYS = re.compile(
    r"(?:\b(?:is|it['’]?s|it is|that['’]s|was|will be|set to|to be)\b|['’]s(?=[ ,])"
    r"|:)[,\s]*(?:(?:uh+|um+|er+|like|so|now),?\s*)*",
    re.I,
)
_TYPED = re.compile(
    r"\b(?:typed|entered|used|tried|put in|type|enter|use)[,\s]+(?:(?:uh+|um+|er+|so|like"
    r"|in),?\s+)*(?=\S)",
    re.I,
)
_NO_VALUE = re.compile(
    "^(?:not|n't|been|being|expired|wrong|reset|forgotten|invalid|incorrect|lost|locked"
    "|working|safe|fine|ok|okay|right|correct|gone|"
    "changed?|new|old|too|very|so|in|on|at|for|from|by|with|because|about|there|here|the same"
    "|the (?:one|problem|"
    r"thing|issue|reason)|a (?:bit|"
    "problem|while|mess|pain)|my|your|his|her|their|it|that|this|no|never|always|also|still"
    "|what|when|where|how|to|required|needed|"
    "different|long|short|easy|hard|saved|stored|written|someone|something|possible|going"
    "|supposed|asking|telling|saying|getting|"
    r"due|all|just|only|more|easier|better|again)\b",
    re.I,
)
_GOES_ON = re.compile(
    r"\b(?:i|it|you|should|shouldn['’]t|don['’]t|can|could|but|and (?:i|it|my|we|you|the|can"
    r"|could|that)|because|so|anyway)\b",
    re.I,
)
_NEXT_MATTER = re.compile(
    r"\s+(?:and|but|so|can|could|please|then)\b(?= \w+ \w+ \w+)", re.I
)
_TRAILS_OFF = re.compile(
    r"(?:[,\s]+(?:oh|ah|oops|uh|um|er|sorry|wait|well|right|please))+$", re.I
)
_LONGEST_PASSWORD = 12
# The agent says that this should not have been said.
_REBUKE = re.compile(
    r"\b(?:please )?(?:don['’]?t|do not|never|no need to|shouldn['’]?t|should not|best not to"
    "|rather you didn['’]?t) (?:ever )?"
    r"(?:share|tell|give|say|read|repeat|reveal|disclose|send|need your)\b",
    re.I,
)


# Figures in a row, or a word for a word that opens something.
_MAY_HOLD = Caseless(
    rf"\d[\s,\-]*\d[\s,\-]*\d|\b{_TOKEN}[\s,\-]+(?:uh |um |then )*{_TOKEN}|pass|log ?in|word"
    "|maiden|security|phrase|answer|wi-?fi"
)


@remember
def _may_hold(text: str) -> bool:
    return _MAY_HOLD.occurs(text)


@dataclass(frozen=True, slots=True)
class Code:
    words: str
    """The sentence or the answer it was said in."""
    value: str
    noun: str


def find_codes(text: str, question: str, reply: str) -> Iterator[Code]:
    """`question` is what the agent said before, `reply` what it said after."""
    if not _may_hold(text.rstrip(" .!?")):
        return
    sentences = split_sentences(text)
    noun = before = ""
    asked = _asked_for(question)
    for sentence in sentences:
        for code in (
            *_passwords(sentence, noun, rebuked=bool(_REBUKE.search(reply))),
            *_numbers(sentence, noun, asked),
        ):
            points = before and (
                _POINTS.match(sentence) or (code.noun.lower() in _BARE_NOUNS and noun)
            )
            yield replace(code, noun=before.strip(" .!?")) if points else code
        noun, before = _last_noun(sentence) or noun, sentence


def _asked_for(question: str) -> str:
    """The secret an agent asks for, be it in a question or in "I need a card for the deposit"."""
    nouns = list(SECRET_NOUN.finditer(question))
    plain = list(_PLAIN_NOUN.finditer(question))
    asks = "?" in question or re.search(
        r"\b(?:need|please|may i|tell me|give me|read me|take|confirm|enter|say)\b",
        question,
        re.I,
    )
    if not nouns or not asks or (plain and plain[-1].start() > nouns[-1].start()):
        return ""
    return (
        question[nouns[0].start() : nouns[-1].end()]
        if nouns[-1].end() - nouns[0].start() < _NEAR
        else nouns[-1].group()
    )


def _last_noun(sentence: str) -> str:
    secret = max(
        (*SECRET_NOUN.finditer(sentence), *PASSWORD.finditer(sentence)),
        key=lambda match: match.start(),
        default=None,
    )
    plain = max(
        (
            match.start()
            for match in _PLAIN_NOUN.finditer(sentence)
            if match.group().lower() != "since"
        ),
        default=-1,
    )
    return "" if secret is None or plain > secret.start() else secret.group().strip()


def _numbers(sentence: str, noun_before: str, asked: str) -> Iterator[Code]:
    for run in _RUN.finditer(sentence):
        figures, said = figures_of(run.group()), re.findall(r"\w+", run.group())
        if len(figures) < _FEWEST and len(said) < _FEWEST:
            continue
        is_pair = len(said) < _FEWEST and not run.group().isdecimal()
        if noun := _governor(sentence, run, noun_before, asked, is_pair=is_pair):
            yield Code(sentence, run.group(), noun)


def _governor(
    sentence: str, run: re.Match[str], noun_before: str, asked: str, *, is_pair: bool
) -> str:
    before, after = sentence[: run.start()], sentence[run.end() :]
    if _UNIT_AFTER.match(after) or _HOUR_BEFORE.search(before):
        return ""
    secret = max(
        SECRET_NOUN.finditer(before), key=lambda match: match.start(), default=None
    )
    plain = max(
        _PLAIN_NOUN.finditer(before), key=lambda match: match.start(), default=None
    )
    if secret and _STRONG.match(secret.group()):
        plain = None
    if (
        plain
        and secret
        and _BESIDES.search(before[: plain.start()])
        and re.search(r"\b(?:is|was)\b|['’]s\b", before[plain.end() :])
    ):
        plain = None
    if plain and (secret is None or plain.start() >= secret.end()):
        return ""
    if secret:
        return (
            secret.group().strip()
            if not is_pair or run.start() - secret.end() <= _NEAR
            else ""
        )
    return _later_noun(after, asked or ("" if is_pair else noun_before))


def _later_noun(after: str, otherwise: str) -> str:
    """ "Four four one nine, that's the door code." """
    named = SECRET_NOUN.search(after[:_NEAR])
    plain = _PLAIN_NOUN.search(after[:_NEAR])
    if plain and (named is None or plain.start() < named.start()):
        return ""
    return named.group().strip() if named else otherwise


def _passwords(sentence: str, noun_before: str, *, rebuked: bool) -> Iterator[Code]:
    cue = PASSWORD.search(sentence)
    if cue is None and not PASSWORD.fullmatch(noun_before):
        return
    start, noun = (cue.end(), cue.group()) if cue else (0, noun_before)
    ways = (
        [*_SAYS.finditer(sentence, start), *_TYPED.finditer(sentence, start)]
        if cue or rebuked
        else [*_TYPED.finditer(sentence)]
    )
    for way in sorted(ways, key=lambda match: -match.end()):
        if value := _password(sentence[way.end() :]):
            yield Code(sentence, value, noun)
            return


def _password(said: str) -> str:
    """What was said as the password; nothing where a password is only talked about."""
    pieces = re.split(r"(,\s+)", said.strip(" .,!?\"'"))
    kept = list(itertools.takewhile(lambda piece: not _GOES_ON.search(piece), pieces))
    kept[-1:] = [_NEXT_MATTER.split(kept[-1])[0]] if kept else []
    value = _TRAILS_OFF.sub("", "".join(kept).strip(" .,!?\"'")) or _GOES_ON.split(
        pieces[0]
    )[0].strip(" .,")
    return (
        ""
        if not value or _NO_VALUE.match(value) or len(value.split()) > _LONGEST_PASSWORD
        else value
    )
