import re

SCENARIO = "edge_change_of_mind"
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

class Desk:
    def __init__(self):
        self.started = False
        self.day = self.hour = self.name = self.dob = ""
        self.done = ""

    def say(self, words, *tools, over=False):
        return {"text": words, "tool_calls": list(tools), "ends_call": over}

    def hear(self, text):
        if not text.strip():
            if self.started:
                return self.say("Take your time.")
            self.started = True
            return self.say("Hello, Saint Brigid's outpatients. What would you like to arrange?")
        low = text.lower()
        new_day, new_hour = day_in(text), hour_in(text)
        changed = bool(self.day and new_day and new_day != self.day)
        self.name = name_in(text) or self.name
        self.dob = dob_in(text) or self.dob
        self.day, self.hour = new_day or self.day, new_hour or self.hour
        slot = f"{self.day} at {self.hour}"
        if self.done and changed:
            self.done = slot
            return self.say(f"No trouble at all. I've changed it; you're now booked for {slot}. Anything more?",
                            {"name": "move_booking", "arguments": {"name": self.name, "day": self.day, "time": self.hour}})
        if self.done:
            if re.search(r"which day|down for|what day", low):
                return self.say(f"I have you down for {slot}.")
            if parting(text):
                return self.say("Lovely, see you then. Goodbye now.", over=True)
            return self.say("Grand. Anything more?")
        if parting(text):
            return self.say("Right so, goodbye.", over=True)
        lead = f"Of course, {self.day} instead. " if changed else ""
        if not self.day or not self.hour:
            return self.say(lead + "Which day and time would you like?")
        if not self.name:
            return self.say((lead or f"{slot}, certainly. ") + "May I take your name?")
        if not self.dob:
            return self.say(lead + f"Thanks, {self.name.split()[0]}. And your date of birth?")
        self.done = slot
        return self.say(lead + f"That's you booked for {slot}. Anything more?",
                        {"name": "book", "arguments": {"name": self.name, "dob": self.dob, "day": self.day, "time": self.hour}})


def make():
    desk = Desk()

    def agent(text):
        return desk.hear(text)

    return agent
