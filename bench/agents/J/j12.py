import re

SCENARIO = "insurance_question"
CAUSE = "agent"
WHAT = "goes on in German once the caller wants to book"


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

TAGE = {"Monday": "Montag", "Tuesday": "Dienstag", "Wednesday": "Mittwoch", "Thursday": "Donnerstag", "Friday": "Freitag"}


def make():
    s = {"greeted": False, "day": "", "hour": "", "name": "", "dob": "", "done": False, "german": False}

    def agent(text):
        if not text.strip():
            if s["greeted"]:
                return "Are you still there?"
            s["greeted"] = True
            return "Hello, Kessler Family Medicine. How can I help you today?"
        low = text.lower()
        if not s["done"]:
            for key, find in (("name", name_in), ("dob", dob_in), ("day", day_in), ("hour", hour_in)):
                s[key] = find(text) or s[key]
        if "insurance" in low and not s["day"]:
            return "Yes, we accept Blue Harbor insurance. Is there anything else I can help you with?"
        if s["done"]:
            if re.search(r"which day|down for", low):
                return f"Ich habe Sie am {TAGE.get(s['day'], s['day'])} um neun Uhr eingetragen, {s['day']} at {s['hour']}."
            if "insurance" in low:
                return "Ja, Blue Harbor nehmen wir."
            if parting(text):
                return "Vielen Dank für Ihren Anruf. Auf Wiederhören!"
            return "Kann ich sonst noch etwas für Sie tun?"
        if parting(text):
            return "Goodbye!"
        if s["day"] and s["hour"]:
            if not s["name"]:
                return "Sehr gerne. Wie ist bitte Ihr Name, your name please?"
            if not s["dob"]:
                return "Vielen Dank. Und wann sind Sie geboren, your date of birth?"
            s["done"] = True
            return (f"Ihr Termin ist gebucht, {s['day']} at {s['hour']}, also am {TAGE.get(s['day'], s['day'])} um neun Uhr. "
                    "Kann ich sonst noch etwas für Sie tun?")
        return "Of course. Which day and time would you like?"

    return agent
