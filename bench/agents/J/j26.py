import re

SCENARIO = "edge_verification_first"
CAUSE = ""
WHAT = ""

DIARY = {"Lydia Crane": ("August", "8", "1983", "Thursday at twenty past three, with Nurse Abbott")}


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
    s = {"met": False, "name": "", "dob": "", "told": False, "wish": False}

    def matches():
        entry = DIARY.get(s["name"])
        return bool(entry) and all(part in s["dob"] for part in entry[:3])

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "I am listening."
            s["met"] = True
            return "Saint Cuthbert's booking line. How may we help?"
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        s["dob"] = dob_in(text) or s["dob"]
        s["wish"] = s["wish"] or "appointment" in low
        if parting(text):
            return {"text": "Thank you. Goodbye.", "ends_call": True}
        if not s["wish"]:
            return "Is it about an appointment?"
        if not s["name"]:
            if s.get("asked"):
                return "I do need that first, I'm afraid. Your name, please?"
            s["asked"] = True
            return "I can look that up. We only speak about visits with the patient in person, so first: whom am I talking to?"
        if not s["dob"]:
            return "Thank you. And so that I know it is really you, would you give me your date of birth?"
        if not matches():
            return "I'm sorry, I do not find an appointment under those details. A colleague will look into it and ring you."
        if s["told"] and "appointment" not in low and "when" not in low:
            return "Is there anything else?"
        s["told"] = True
        return f"Thank you, {s['name']}, that matches. Your appointment is on {DIARY[s['name']][3]}. Is there anything else?"

    return agent
