"""Faults and absences: reported to a line that exists to act on them, a report is a request."""

from aftercall.llm.rules.cue import Caseless, Cue
from aftercall.llm.rules.memo import remember

_THING = r"(?:a|an|no|another|some|the same|this|water|terrible|weird|black|rising)"
FAULT = Caseless(
    r"\b(?:(?:has|have|['’]s|['’]ve|is|are|was|were) (?:been |gone )?(?:out|off|down) (?:since"
    "|for|again|all|now|"
    r"this)|packed (?:in|up)|on the fritz|"
    "(?:came|come|arrived|turned up|got here|showed up) (?:all )?(?:smashed|broken|damaged"
    "|cracked|wrong|empty|"
    r"late|cold|torn|dented|scratched)|"
    "(?:weren['’]?t|wasn['’]?t|never|not|hasn['’]?t been|haven['’]?t been) (?:been "
    ")?(?:collected|delivered|"
    r"emptied|fixed|repaired|picked up|sorted)|"
    "(?:gone|going|went) lame|blowing (?:hot|cold)|slipping|nobody(?:['’]s| has)? (?:been"
    "|come|came|showed|"
    r"turned up)|won['’]?t (?:shut|close|stop|drain|fit|lock|budge))\b|"
    r"\bkeeps? (?:on )?(?:dropping|crashing|freezing|disconnecting|stopping|going|leaking"
    "|beeping|cutting|restarting|buzzing|"
    "falling|tripping|stalling|failing|logging|kicking|rebooting|making|overheating|turning"
    "|flashing|timing|saying|asking|"
    r"giving|jamming|coming)\b|"
    r"(?:\b(?:is|are|was|has|have|been|gone|went|got|seems|just|totally|completely|still)"
    "|['’](?:s|re|ve)) (?:all |"
    "completely |totally |just |still |been |gone |a bit |really |now )*(?:down|broken|stale"
    "|stuck|frozen|dead|leaking|"
    "blocked|clogged|jammed|damaged|faulty|cracked|offline|overheating|flickering|not working"
    "|playing up|acting up|"
    "on the blink|dripping|flooded|flooding|bust|smashed|torn|locked out|overflowing|burst"
    "|corrupted|blank|missing (?:a|the|"
    r"from|two|one|three))\b|"
    r"\b(?:isn['’]?t|aren['’]?t|doesn['’]?t|won['’]?t|wouldn['’]?t|stopped|quit|can['’]?t"
    "|cannot|never|not|hasn['’]?t|"
    "haven['’]?t|didn['’]?t) (?:even |really |been |seem to )*(?:work|working|worked|start"
    "|starting|turn on|turning|load|"
    "loading|open|opening|close|charge|charging|connect|connecting|print|printing|boot"
    "|booting|respond|responding|arrive|"
    "arrived|come on|turned up|shown up|show up|been delivered|log in|log on|sign in|get in"
    "|get into|access|heating|cooling|"
    r"draining|flush|flushing|sync|syncing|light|lock)\b|"
    r"(?:\b(?:is|are|was|keeps?|started)|['’]s|['’]re) (?:just |always |only |still "
    ")*(?:hanging|freezing|crashing|jamming|lagging|"
    "looping|glitching|leaking|dripping|sticking|smoking|sparking|rattling|squeaking|grinding"
    "|buzzing|humming|stabbing|"
    r"(?:giving|showing|printing|sending|coming (?:out|up|through)|charging|adding)(?: \w+)* "
    "(?:blank|wrong|error|errors|twice|double|"
    r"nothing|garbage|gibberish))\b|\b(?:popped|came|fallen|fell|dropped|broken|worn|torn"
    "|(?:has|have|['’]s|['’]ve|just|had|that['’]s) "
    r"come) (?:out|off|loose|apart|through)\b"
    r"(?! (?:the|of|in|a|with))|"
    r"\b(?:lights?|lamp|power|internet|heating|lift|water|phones?|screen|alarm|signal|boiler"
    r"|wi-?fi|broadband)\b[\w ]* (?:is|are) (?:out|"
    r"off|down)\W*$|"
    r"\b(?:giving|having|making|causing) (?:\w+ ){0,2}(?:trouble|bother|grief)\b|\b(?:does"
    r"|do) nothing but\b|\bmissed (?:us|our|"
    r"my)(?: out)?\b|"
    r"\b(?:gone off|cuts? out|cutting out|(?:gives?|giving|shows?|getting) (?:me )?an? "
    "(?:blank|white|error)|"
    "can['’]?t get (?:out|in|into)|failed|fails|keeps failing|broke (?:down|off)|crashed"
    "|crashes|fell off|went out|blew up|"
    "snapped|sprung a leak|(?:is|are|['’]s) making (?:a|an|this|that|some|funny|weird|strange"
    "|the most|such)|makes a (?:weird|strange|"
    r"funny|loud|grinding))\b|"
    r"\b(?:there['’]?s|there is|we['’]ve got|i['’]ve got|we have|i have|i got|i['’]m getting"
    "|getting|"
    rf"having)(?: got)? {_THING} (?:\w+ ){{0,2}}?(?:leak\w*|fault|problem with|issue with|bug"
    "|error|outage|smell|hot water|"
    "heating|power|internet|signal|crack|noise|rattle|flood|water coming|damage|trouble"
    r"|warning light|mould|mold|damp|mice|rats)\b|"
    r"\b(?:(?:slow |a )?puncture|flat (?:tyre|tire|battery)|blocked (?:drain|sink|toilet)"
    "|burst pipe|power cut|no (?:power|"
    "heating|hot water|internet|signal|electricity)|(?:mice|rats|wasps|bed ?bugs|cockroaches"
    "|mould|mold|damp) (?:in|on|all)|"
    "charged (?:me |us )?twice|double[- ]charged|overcharged|wrong (?:item|size|order|colou?r"
    "|part|thing)|arrived (?:broken|"
    "damaged|cracked|smashed|cold)|water (?:is )?(?:coming|dripping|pouring|leaking)|locked "
    "out of|times? out|timed out|"
    r"error (?:message|code))\b",
)
ABSENCE = Caseless(
    r"\b(?:(?:will not|won['’]?t|cannot|can['’]?t|not able to|unable to) (?:come|attend|make "
    r"it)\b|(?:is|"
    r"['’]s) (?:off |home |out )?(?:sick|ill|poorly|unwell)\b|"
    "won['’]?t be (?:in|at|coming|there|able to (?:come|make))|(?:is|['’]s|isn['’]?t|['’]m "
    "not|not) (?:coming|"
    "going) (?:in|to be (?:in|at)|to make it (?:in|to))|(?:is|['’]s|i['’]m) (?:off|home|out) "
    "sick|(?:has|have|['’]s got|"
    "got) (?:a |the )?(?:fever|flu|stomach bug|chicken ?pox|temperature)|calling in sick"
    "|can['’]?t come in(?:to (?:work|"
    r"school))?)\b",
)
_NO_REPORT = Caseless(
    r"\b(?:my phone|the (?:phone )?(?:battery|line|signal|connection))\b.{0,12}\b(?:was|went"
    r"|is|died|dropped)\b|"
    r"^(?:he|she|i['’]m|we['’]re|they['’]re)\b(?!.*\b(?:locked out|can['’]?t (?:log|get|sign"
    "|access)|fever|sick|off|"
    r"in today))|\b(?:in traffic|might|may)\b|\bfor (?:me|us)\b|\b(?:\w*day|morning|afternoon"
    "|evening|week|time|date|that|"
    r"which) (?:doesn['’]?t|won['’]?t|isn['’]?t|don['’]?t) (?:really )?work|\b(?:my (?:\w+ "
    ")?(?:knee|calf|ankle|back|arm|leg|"
    "wrist|foot|shoulder|hip|finger|heart)|used to|last year|when i was|if it|if the|fixed "
    "now|working now|works now|"
    "sorted now|my (?:friend|neighbou?r|colleague)['’]?s?|for a living|no problem|any idea"
    r"|never mind)\b",
)
_OFF = Caseless(
    r"\b(?:school|absence|absent|nursery|kindergarten|attendance|class|teacher|sick|ill|unwell"
    "|fever|flu|temperature|shift|"
    r"rota|roster|staff|crew|payroll|hr)\b",
)
TAKEN_UP = Cue(
    r"\b(?:sorry|ticket|engineer|technician|plumber|electrician|mechanic|look into|report\w*"
    r"|log(?:ged|ging)?|team|replace\w*|"
    r"refund|send (?:someone|somebody|one|a)|raise|open(?:ed)?|noted|note|issue|fix|escalat\w*"
    "|absent|absence|mark|let (?:the|"
    r"her|his|their)|feel better|get well|"
    r"which|what|when|where|since|how long|is it|are you|does it|do you|did you|have you)\b",
)


@remember
def is_fault(text: str) -> bool:
    return bool(FAULT.occurs(text)) and not _NO_REPORT.occurs(text)


def is_absence(text: str, around: str) -> bool:
    """Somebody is off, told where absences are kept."""
    return bool(ABSENCE.occurs(text) and _OFF.occurs(f"{around} {text}"))
