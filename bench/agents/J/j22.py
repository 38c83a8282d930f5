import re

SCENARIO = "edge_topic_detour"
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
    s = {"met": False, "day": "", "hour": "", "name": "", "dob": "", "done": False}

    def ask_next():
        if not (s["day"] and s["hour"]):
            return "Now, which day and time were you hoping for?"
        if not s["name"]:
            return "Might I trouble you for your name?"
        if not s["dob"]:
            return "And might I have your date of birth as well?"
        s["done"] = True
        return (f"That's everything I need, {s['name']}. Your appointment is made for {s['day']} at {s['hour']}. "
                "Will there be anything further?")

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Do forgive me, are you still there?"
            s["met"] = True
            return "Good afternoon, Wimpole House. How might I assist?"
        low = text.lower()
        if not s["done"]:
            for key, find in (("name", name_in), ("dob", dob_in), ("day", day_in), ("hour", hour_in)):
                s[key] = find(text) or s[key]
        if re.search(r"when are you open|opening|your hours|what hours", low):
            hours = "We're open from half past eight until half past five, Monday to Friday. "
            if s["done"]:
                return hours + "Will there be anything further?"
            return hours + "To return to your booking. " + ask_next()
        if s["done"]:
            if re.search(r"which day|down for|made\b|booked|what day", low):
                return f"Indeed it is: {s['day']} at {s['hour']}."
            if parting(text):
                return {"text": "Thank you so much for telephoning. Goodbye.", "ends_call": True}
            return "By all means. Will there be anything further?"
        if parting(text):
            return {"text": "Very good. Goodbye.", "ends_call": True}
        if re.search(r"is my appointment|appointment made", low) and s["day"]:
            return f"Very nearly; I am holding {s['day']} at {s['hour']} for you. " + ask_next()
        return ("Certainly. " if "appointment" in low else "Thank you. ") + ask_next()

    return agent
