"""Illnesses and medicines named of somebody: told to one ear, so kept as secrets."""

from collections.abc import Iterator

from aftercall.llm.rules.cue import Caseless, Cue, words_of
from aftercall.llm.rules.vocabulary import alternatives, vocabulary

_NAMED = vocabulary(
    """
    leukaemia leukemia lymphoma melanoma hiv aids herpes chlamydia gonorrhea syphilis epilepsy epileptic miscarriage dementia lupus
    schizophrenia schizophrenic ptsd ocd adhd autism autistic anorexia anorexic bulimia bulimic asthma asthmatic copd
    emphysema angina arrhythmia endometriosis pcos fibromyalgia glaucoma addiction alcoholism alcoholic hypertension
    hypothyroidism hyperthyroidism tuberculosis narcolepsy sciatica psoriasis eczema osteoporosis thrombosis tourette's
    parkinson's parkinsons alzheimer's alzheimers crohn's crohns huntington's hodgkin's coeliac celiac diabetes diabetic
    depression anaemia anemia hepatitis meningitis cirrhosis gout shingles pneumonia sepsis migraines vertigo concussion
    stroke aneurysm remission ivf anxiety dyslexia dyslexic dyspraxia haemophilia hemophilia migraine
    """
)
_OF_TWO = (
    r"(?:type (?:one|two|1|2) diabet(?:es|ic)|(?:\w+ )?cancer|multiple sclerosis|motor "
    "neurone(?: disease)?|clinical depression|"
    "postnatal depression|bipolar(?: disorder)?|(?:anxiety|panic|eating|personality|bleeding"
    "|mood|migraine) disorder|atrial fibrillation|"
    "heart (?:failure|disease|condition)|(?:kidney|liver|lung|thyroid) (?:disease|failure)"
    "|sickle cell|cystic fibrosis|long covid|"
    "sleep apn(?:ea|oea)|high blood pressure|brain tumou?r|tumou?r|heart attack|blood clot"
    "|panic attacks?|"
    r"autoimmune \w+|macular degeneration|stage (?:one|two|three|"
    r"four|\d)|[a-z]{3,}(?:'s|’s)? (?:syndrome|disease)|"
    "[a-z]{2,}(?:itis|osis|aemia|noma|algia|plegia|opathy)|von [a-z]+['’]s|(?-i:MS|ALS|IBS"
    r"|CFS|MND|CKD|POTS|TB)(?!\w))"
)
_CONDITIONS = rf"(?:{_OF_TWO}|{alternatives(_NAMED)})"
_DIAGNOSED = Cue(
    r"\bdiagnosed (?:me |him |her |us |my \w+ )?(?:with|as) (?:having "
    r")?(?P<value>[\w\s'’\-]{3,50}?)(?= (?:in|last|this|and|but|"
    r"so|when|back|after|on|at|about)\b|[,.;!?]|$)",
)
# A named illness told of somebody the caller speaks of, not of a ward or a charity.
_CONDITION = Cue(
    rf"\b(?P<value>{_CONDITIONS})(?!\w|['’](?!s\b))(?!(?:['’]s)? (?:research|charity|society"
    "|ward|nurse|clinic|centre|center|awareness|"
    rf"charities|fund))"
)
_OF_SOMEONE = Caseless(
    r"\b(?:i|i['’]\w+|my|me|he|he['’]s|she|she['’]s|his|her|we|our|it['’]?s|it is|they"
    r"|they['’]\w+|found|got|has|who has|suffer\w*|had)\b"
)
_MAY_NAME = Caseless(
    r"\b(?:diagnos|cancer|scleros|motor neur|bipolar|disorder|fibrillation|heart|kidney|liver"
    "|lung|thyroid|sickle|fibros|covid|apnea|"
    rf"apnoea|blood|tumo|panic|autoimmune|macular|stage|syndrome|disease|von |"
    rf"(?:ms|als|ibs|cfs|mnd|ckd|pots|tb|{alternatives(_NAMED)})\b)"
)
_ENDINGS = ("itis", "osis", "aemia", "noma", "algia", "plegia", "opathy")
_NO_ILLNESS = Cue(r"\b(?:allerg\w+|if i)\b")
_NO_DISEASE = vocabulary("diagnosis prognosis hypnosis osmosis symbiosis economical")

_DRUG = (
    "(?:[a-z]{3,}(?:zepam|zolam|oxetine|pram|traline|pril|sartan|olol|statin|formin|gliptin"
    "|mycin|cillin|prazole|tidine|caine|codone|"
    "morphone|azine|apine|idone|triptan|parin|ximab|zumab|umab|thyroxine)|lithium|insulin"
    "|prozac|zoloft|xanax|valium|ritalin|adderall|"
    "methadone|tramadol|warfarin|morphine|oxycodone|gabapentin|ozempic|viagra"
    "|antidepressants?|antipsychotics?|blood thinners?|"
    r"chemo(?:therapy)?|beta blockers?|statins?|steroids)"
)
_TAKES = Cue(
    r"\b(?:i|he|she|we|they|mum|mom|dad|(?:my|our) \w+)(?:['’](?:m|s|ve|re)| am| is| "
    "are)?(?: now| still| already|"
    rf" also| been| just| both)* "
    "(?:on|take|takes|taking|having|come off|came off|finished|started|prescribed|got put on"
    "|was put on|was prescribed|have been on|"
    rf"has been on)\b[\w ,'’]{{0,25}}?"
    rf"\b(?P<value>{_DRUG})\b|\b(?:put|prescribed) (?:me|him|her|us|my \w+)(?: on)?\b[\w "
    rf",'’]{{0,25}}?\b(?P<given>{_DRUG})\b",
)
_ORDERED = Cue(
    r"\b(?:refill|prescription|order|renew\w*|collect|pick ?up|fetch|run out|running (?:low"
    r"|out)|repeat|deliver)\b"
)


def may_name(text: str) -> bool:
    """Cheaply, for a whole turn: where no illness or medicine can be named, none of its clauses
    need be asked.
    """
    return _may_be_ill(text) or _TAKES.search(text) is not None


def _may_be_ill(text: str) -> bool:
    return _MAY_NAME.occurs(text) or any(
        word.endswith(_ENDINGS) for word in words_of(text)
    )


def find_diagnoses(text: str) -> Iterator[str]:
    """The illness a clause names of somebody."""
    if not _may_be_ill(text):
        return
    match = _DIAGNOSED.search(text) or (
        _CONDITION.search(text) if _OF_SOMEONE.occurs(text) else None
    )
    if (
        match
        and not _NO_ILLNESS.search(text)
        and match["value"].lower() not in _NO_DISEASE
    ):
        yield match["value"].strip()


def find_medicines(text: str, call: str) -> Iterator[str]:
    """A medicine somebody takes; one that the call is about ordering has to be named to be
    ordered.
    """
    if (match := _TAKES.search(text)) is not None:
        drug = match["value"] or match["given"]
        if not _ORDERED.search(call):
            yield drug
