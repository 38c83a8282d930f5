import re

SCENARIO = "appointment_scheduling"
CAUSE = "tester"
WHAT = "asks rightly at which of two branches; the script has no answer, so nothing can be booked"


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
    s = {"met": False, "day": "", "hour": "", "name": "", "dob": "", "branch": "", "tries": 0, "closed": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Are you still there?"
            s["met"] = True
            return "Hello, Two Rivers Medical. How can I help you?"
        low = text.lower()
        for key, find in (("day", day_in), ("hour", hour_in), ("name", name_in), ("dob", dob_in)):
            s[key] = find(text) or s[key]
        for branch in ("northgate", "riverside"):
            if branch in low:
                s["branch"] = branch.capitalize()
        if parting(text):
            return {"text": "Thank you for calling. Goodbye.", "ends_call": True}
        if not s["day"] or not s["hour"]:
            return "Which day and time would you like?"
        if not s["name"]:
            return "May I have your name, please?"
        if not s["dob"]:
            return "Thank you. And your date of birth?"
        if not s["branch"]:
            s["tries"] += 1
            if s["tries"] == 1:
                return "Thank you. We have two branches, Northgate and Riverside. To which of them would you like to come?"
            if s["tries"] == 2:
                return "I need to know the branch before I can book. Northgate or Riverside?"
            return ("I'm sorry, without the branch I cannot book anything, because each keeps its own calendar. "
                    "Please call again when you have decided.")
        return f"You are booked for {s['day']} at {s['hour']} at {s['branch']}. Anything else?"

    return agent
