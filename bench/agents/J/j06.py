import re

SCENARIO = "edge_asked_twice"
CAUSE = ""
WHAT = ""


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def day_in(text):
    found = [w for w in re.findall(r"[a-z]+", text.lower()) if w in DAYS]
    return found[-1].capitalize() if found else ""


HOURS = "one two three four five six seven eight nine ten eleven twelve".split()


def hour_in(text):
    found = re.findall(r"\bat (%s|1[0-2]|[1-9])\b" % "|".join(HOURS), text.lower())
    if not found:
        return ""
    return HOURS[int(found[-1]) - 1] if found[-1].isdigit() else found[-1]


NO_NAME = set("""I Hi Hello Yes No Oh Ok Okay Please Thank Thanks Good Sorry My The Dr Doctor Lin Blue Harbor Corner
Main Street Pharmacy Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
July August September October November December Well Then Actually Sure""".split())


def name_in(text):
    for first, last in re.findall(r"\b(?=([A-Z][a-z]+) ([A-Z][a-z]+)\b)", text):
        if first not in NO_NAME and last not in NO_NAME:
            return first + " " + last
    return ""


MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def dob_in(text):
    m = re.search(r"\b(?:%s) \d{1,2}(?:st|nd|rd|th)?,? \d{4}" % MONTHS, text)
    if not m:
        m = re.search(r"\b(?:%s) (?:the )?\w+(?:st|nd|rd|th)\b[^.!?]*" % MONTHS, text)
    return m.group(0) if m else ""


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    got = {}
    flags = set()
    FINDERS = {"name": name_in, "dob": dob_in, "day": day_in, "hour": hour_in}
    ASK = {"name": "Under what name shall I put that?", "dob": "And when were you born, please?",
           "day": "Which day would you like?", "hour": "What time on that day?"}

    def agent(text):
        if not text.strip():
            if "greeted" in flags:
                return "Still here when you are."
            flags.add("greeted")
            return "Maple Dental, hi there! This is Joy."
        low = text.lower()
        if "booked" not in flags:
            got.update({k: f(text) for k, f in FINDERS.items() if f(text)})
        if "booked" in flags:
            if re.search(r"which day|down for|what time|what day", low):
                return f"You're in for {got['day']} at {got['hour']}, Mr. {got['name'].split()[-1]}."
            if parting(text):
                return {"text": "Take care now. Bye!", "ends_call": True}
            return "You bet. Anything else on your list?"
        if parting(text):
            return {"text": "Okay, bye!", "ends_call": True}
        for key in ("day", "hour", "name", "dob"):
            if key not in got:
                return ASK[key]
        flags.add("booked")
        last = got["name"].split()[-1]
        spelled = "-".join(last.upper())
        return (f"Oh perfect, you gave me everything at once, that makes my morning! {got['name']}, {spelled}, born "
                f"{got['dob']}. Okay, you are booked for {got['day']} at {got['hour']}. Anything else on your list?")

    return agent
