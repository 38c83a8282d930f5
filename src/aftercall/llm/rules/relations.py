"""People in the caller's life and at their work, as the caller speaks of them."""

from aftercall.llm.rules.cue import Cue, Table
from aftercall.llm.rules.memo import remember

RELATION = (
    "(?:wife|husband|spouse|partner|fianc[eé]e?|boyfriend|girlfriend|ex(?:-?(?:wife"
    "|husband))?|son|daughter|kids?|boy|girl|"
    "baby|twins|child(?:ren)?|brother|sister|mother|father|mum|mom|mommy|dad|parents?"
    "|grandmother|grandma|nana|nan|granny|"
    r"grandfather|grandpa|grandad|"
    "grandson|granddaughter|grandkids|uncle|aunt|auntie|cousin|niece|nephew|step(?:son"
    "|daughter|mother|father|mom|dad)|"
    "(?:son|daughter|mother|father|brother|sister)[- ]in[- ]law|neighbou?r|friend|best friend"
    "|flatmate|roommate|landlord|"
    "landlady|boss|manager|supervisor|colleague|coworker|co-worker|assistant|secretary"
    "|business partner|accountant|lawyer|"
    "bookkeeper|cleaner|gardener|contractor|builder|doctor|therapist|trainer|supplier|team "
    "lead|carer|caregiver|nurse|tenant|"
    r"dog|cat)"
)
_NO_NAME = (
    "(?:What|That|It|Who|There|This|He|She|They|Here|Where|How|When|Which|Why|And|But|So|Yes"
    "|Yeah|No|The|My|Our|Your|His|Her|You|We|If|"
    r"Because|Everybody|"
    "Everyone|Someone|Somebody|Nobody|Good|Well|Okay|Oh|Monday|Tuesday|Wednesday|Thursday"
    "|Friday|Saturday|Sunday|Today|Tomorrow|Tonight|"
    r"One|Let|Now)"
)
_NAME = rf"(?!{_NO_NAME}\b)[A-Z][a-zà-öø-ÿ'’\-]+"
_TRUTHS = (
    "(?:is|['’]s|was|has|have|had|lives?|works?|carries|died|passed|uses?|can['’]?t|turns?"
    "|turned|turning|needs a wheelchair|"
    r"speaks|takes|goes|stays|drives|owns|runs|handles|suffers|got|just|will be|moved|left)"
)
_TOLD = Table(
    (Cue(pattern, 0), None)
    for pattern in (
        (
            rf"\b(?i:my|our) (?:(?!\b(?i:name)\b)[\w-]+ ){{0,2}}(?i:{RELATION}),? (?:(?i:she['’]s"
            rf"|he['’]s|called|named|is|um|uh),? )*{_NAME}\b"
        ),
        (
            rf"\b{_NAME}(?:,| is|['’]s|, who['’]s|, she['’]s|, he['’]s) (?:(?i:my|our)) (?:[\w-]+ "
            rf"){{0,2}}(?i:{RELATION})\b"
        ),
        rf"\b(?i:my|our) (?:[\w-]+ )?(?i:{RELATION})['’]s name is\b",
        (
            r"\b(?i:my|our) (?:(?:little|older|younger|elder|late|big|oldest|youngest|eldest"
            "|ex|own|"
            f"elderly) )?(?i:{RELATION})(?:,? (?i:he|she))?(?: |(?=['’]))(?i:also |really "
            "|now |still |only |"
            rf"always )?(?i:{_TRUTHS})\b(?! (?i:just |also )?(?i:saying|calling|asking"
            "|getting one|here|telling|waiting|shouting))"
        ),
        # "my sister ann moved to lisbon", written without capitals
        (
            rf"\b(?i:my|our) (?i:{RELATION}) [a-z'-]{{2,}} (?i:(?:has )?(?:just )?moved to|(?:is "
            r")?(?:living|based) in|works (?:at|for))\b"
        ),
        (
            r"\b[\w'’]+ (?i:from|in|on) (?i:the )?(?i:[\w-]+ (?:team|department|group)"
            "|marketing|finance|accounting|legal|"
            r"engineering|procurement|payroll|hr|logistics|reception|operations)\b(?! (?i:line"
            "|issue))"
        ),
        (
            rf"\b{_NAME} (?i:at|from) (?:the )?(?i:bank|office|school|garage|agency|council"
            "|clinic|church|gym|shop|club|bureau|"
            r"embassy|insurer)\b"
        ),
        (
            r"\b(?i:my|our) (?:(?:little|older|younger|elder|late|big|oldest|youngest|eldest"
            "|ex|own|"
            f"elderly) )?(?i:{RELATION})(?:['’]s)? (?i:and i|doesn['’]?t|isn['’]?t|won['’]?t"
            "|hates|loves|likes|prefers|comes?|"
            r"looks? after|helps?|picks?|does|naps|sleeps|called|named)\b"
        ),
        (
            rf"\b{_NAME}(?:['’]s| is| will be|['’]ll be) (?i:our|the|my|his|her|a|an|handling"
            "|in charge|responsible|taking over|"
            r"covering|leading|running|the new|in charge of|on (?:leave|holiday|vacation))\b"
        ),
        (
            f"^(?:(?i:and|so|but|um|uh),? )*{_NAME} (?i:runs|handles|manages|leads|owns"
            "|covers|looks after|takes care of|"
            r"works (?:in|on|at|for|with))\b"
        ),
        r"\b(?i:calling for my|on behalf of my)\b",
        (
            r"\b(?i:it['’]s|this is|they['’]re|one|gift|cake|flowers|appointment|table) (?i:for"
            rf"|with) (?i:my|our) (?:\w+ )?(?i:{RELATION})\b"
        ),
        (
            r"\b(?i:one of us|one of (?:the|our) (?:guests|kids|party)|somebody in our (?:party"
            r"|group)) (?i:has|is)\b"
        ),
    )
)
_SELF = Cue(
    r"^(?i:(?:hi|hello|hey|yeah|yes|um|uh)[, ]+)*(?i:this is|it['’]s|i['’]m|my name) (?:is )?[A-Z]",
    0,
)


@remember
def is_about_someone(text: str) -> bool:
    return not _SELF.match(text) and any(cue.search(text) for cue, _ in _TOLD.of(text))
