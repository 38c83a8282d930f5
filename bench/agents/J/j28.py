import re

SCENARIO = "edge_dtmf_menu"
CAUSE = "agent"
WHAT = "raises a KeyError as soon as it looks up the time that the caller wants"


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

FREE = {"Monday": {"nine": True, "ten": True}, "Tuesday": {"nine": True, "three": True}, "Thursday": {"two": True}}


def make():
    s = {"met": False, "day": "", "hour": "", "name": "", "dob": "", "done": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "This is the appointment desk. What can I do for you?"
            s["met"] = True
            return "Welcome to Cedar Clinic. For appointments, press one. For everything else, stay on the line."
        low = text.lower()
        for key, find in (("day", day_in), ("hour", hour_in), ("name", name_in), ("dob", dob_in)):
            s[key] = find(text) or s[key]
        if parting(text):
            return "Goodbye!"
        if not s["day"]:
            return "This is the appointment desk. What can I do for you?"
        if FREE[s["day"]][s["hour"]] and not s["name"]:
            return "That is free. May I have your name?"
        if not s["dob"]:
            return "And your date of birth?"
        return f"You are booked for {s['day']} at {s['hour']}. Anything else?"

    return agent
