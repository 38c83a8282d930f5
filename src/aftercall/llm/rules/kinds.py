"""What kind of request an act is."""

import re

from aftercall.llm.rules.cue import Cue, Table
from aftercall.llm.rules.memo import remember
from aftercall.model.reading import RequestKind

_TABLE: tuple[tuple[RequestKind, str], ...] = (
    (
        "reminder",
        (
            r"^(?:set (?:me )?(?:up )?(?:a|another) )?(?:remind|reminder)\b|\breminder\b"
            r"|\bremind (?:me|us|him|her|them)\b|"
            r"^(?:nudge|ping|wake) me\b|^give (?:me|us) a (?:nudge|prod|poke)\b|^(?:don['’]?t "
            r")?let me forget\b"
        ),
    ),
    (
        "note",
        (
            r"^(?:(?:file|make|put|add|leave|take|write|jot)\b.{0,20}\bnotes?\b|note\b|jot\b"
            "|write down|write (?:that|this|"
            "it) down|put (?:that|this|it) (?:in|on) (?:my|the|his|her) (?:file|record|notes?"
            r"|account|chart))|\b(?:a|in the|"
            r"to the|to my|on the|on my|in my) (?:note|notes|file|record|chart)\b"
        ),
    ),
    (
        "message",
        (
            r"^(?:tell|inform|notify|warn|let (?!me\b|us\b)\w+(?: \w+){0,3} know|pass (?:a|on"
            "|along|it|that|this|the)|"
            r"take (?:a message|this down)|(?:email|text|message) me(?=\W*$| (?:when|once|if"
            "|about|back|as soon|after))|speak (?:to|with)|"
            r"talk (?:to|with)|ask (?!for\b)|have (?:\w+ ){1,4}(?:call|ring|phone|contact|get "
            "back)|(?:call|ring|phone) (?:me|"
            r"us)\b|give (?:me|us|him|her|them|my \w+|[A-Z]\w+) a (?:call|ring|bell))\b"
        ),
    ),
    (
        "issue",
        (
            r"\b(?:bug|ticket|fault|outage|incident|complaint|defect)\b|\b(?:open|file|log"
            "|raise|report|create) (?:an?|this|"
            r"that|the|it)\b.{0,20}\b(?:issue|problem|bug|fault|ticket|leak)\b|^report (?:a|an"
            r"|the|my)\b|^fix\b|^mend\b|^repair\b|"
            r"^have (?:it|that|this) looked at"
        ),
    ),
    (
        "other",
        (
            "^(?:stop|unsubscribe|opt|pause|suspend|deactivate|close|downgrade|upgrade|waive"
            "|freeze|enrol|enroll|sign (?:me|"
            r"us) up|switch|turn (?:off|on)|increase|decrease|lower|raise|donate)\b"
            r"|\b(?:monthly|regular) (?:donation|gift|"
            r"payment)\b|\b(?:subscription|membership|newsletter|mailing list|auto[- ]?(?:pay"
            r"|renew\w*)|direct debit|"
            r"standing order|paperless)\b|"
            r"^(?:change|update|correct|amend|set)\b.{0,30}\b(?:address|e-?mail|phone|number"
            "|name|plan|account|details|"
            r"settings?|billing|payment|preference|password|profile|contact)\b|\b(?:take"
            r"|remove) (?:me|us) (?:off|from)\b|"
            r"^put it (?:up|down)\b|\b(?:account|policy|contract|licen[cs]e)(?:['’]s| is) in\b"
            "|^cancel (?:my|the|"
            r"our) (?:policy|account|plan|contract|service|card|insurance)\b"
        ),
    ),
    (
        "booking",
        (
            "^(?:move|push|shift|reschedule|postpone|bump|bring forward) (?:my|our|the) "
            r"(?:\w+ ){0,2}(?:o['’]?clock|one|two|"
            r"three|four|five|six|seven|eight|"
            r"nine|ten|eleven|twelve|call|interview|review|\w+ with)\b|^(?:change|move|push"
            "|shift|switch|"
            r"postpone)\b.{0,20}\bdelivery\b|\bdelivery slot\b|^bring (?:my|the|"
            r"our) .*\bin\b|^bring \w+ (?:pupils|people|guests|children|students|kids)\b"
            r"|^(?:rent|hire) an? (?:\w+ )?(?:car|"
            r"van|truck|bike|boat|room|hall)|\bcruise\b|\b(?:be|being) seen\b|^(?:pencil|fit"
            "|squeeze|slot|put) (?:me|us|him|"
            r"her) (?:in|down)\b|^come (?:and|out|by|over|round)\b|\b(?:in|on|into|to) (?:my"
            "|the|our) (?:calendar|diary|"
            r"schedule)\b|"
            r"\b(?:appointment|book|booking|rebook|reserve|reservation|table for|a table"
            "|schedule|reschedule|meeting|slot|"
            "viewing|visit|consultation|check-?up|cleaning|haircut|trim|lesson|class|session"
            "|interview|test drive|tour|"
            r"inspection|"
            "taxi|cab|airport car|double room|single room|twin room|a room|room for|suite"
            "|flight|appraisal|estimate visit|"
            "follow[- ]up with|physio|massage|service for (?:my|the) car|oil change|mot|slots"
            "|come (?:in|out|by|round|over)|"
            r"see (?:dr|doctor|the (?:doctor|dentist|vet|nurse|hygienist)))\b|^see\b"
            r"|\bcalendar\b.{0,20}\b(?:block|put|add)\b"
        ),
    ),
    (
        "message",
        (
            r"^(?:tell|inform|notify|warn|let (?!me\b|us\b)\w+(?: \w+){0,3} know|pass (?:on"
            "|along|it|that|this|the)|message|"
            r"speak|talk|get (?:back to|hold of|in touch)|have (?:\w+ ){1,4}(?:call|ring|phone"
            "|contact|email|text|get)|"
            r"connect|put me through|contact|phone|ring|leave (?:a|him|her|them|\w+) (?:a "
            ")?message|"
            "call (?:me|us|him|her|them|my|the|back|[A-Z])|go through|say|give (?:me|us|him"
            r"|her|them|my|\w+) a (?:call|ring|"
            r"bell|message|heads|shout)|ask (?!for\b)|explain|walk me|send (?:a |an |\w+ a "
            r"|\w+ an |"
            r"my \w+ a )?(?:quick )?(?:message|text|email|note to))\b|\bcall ?back\b|\b(?:call"
            r"|ring|phone) me\b|\blet (?:him|"
            r"her|them|the \w+|[A-Z]\w+) know\b|"
            r"^(?:text|email|e-mail) (?!me\b|us\b|it\b|that\b|the\b)"
        ),
    ),
)
_KINDS = Table((Cue(pattern), kind) for kind, pattern in _TABLE)


@remember
def kind_of(act: str) -> RequestKind:
    """The kind of an act told by its verb and nouns; `task` when nothing speaks for another."""
    if re.search(r"\bas (?:a|an) (?:to[- ]?do|task|action)\b", act, re.I):
        return "task"
    return next(
        (kind for pattern, kind in _KINDS.of(act) if pattern.search(act)), "task"
    )
