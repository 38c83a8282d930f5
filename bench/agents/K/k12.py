SCENARIO = "reschedule_appointment"
CAUSE = "agent"
WHAT = "goes on in German half-way"

import re

_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DIGITS = "zero|oh|one|two|three|four|five|six|seven|eight|nine"


class Ear:
    """What has been heard so far."""

    def __init__(self):
        self.name = self.dob = self.day = self.hour = self.phone = ""
        self.all = ""

    def hear(self, t, asked=""):
        self.all += " " + t
        m = re.findall(r"\b(%s)\b" % _DAYS, t, re.I)
        if m:
            self.day = m[-1].capitalize()
        m = re.findall(r"\bat (%s|\d{1,2}(?::\d\d)?)\b" % _HOURS, t, re.I)
        if m:
            self.hour = m[-1].lower()
        m = re.search(r"\b(?:%s)\.? \d{1,2}(?:st|nd|rd|th)?,? \d{4}" % _MONTHS, t, re.I)
        if m:
            self.dob = m.group(0)
        elif asked == "dob" and re.search(r"\d{4}|nineteen|two thousand|%s" % _MONTHS, t, re.I):
            self.dob = t.strip(" .")
        m = re.search(r"(?:\b(?:%s)\b[ ,.-]*){5,}|\d[\d ,.()-]{5,}\d" % _DIGITS, t, re.I)
        if m and not re.search(_MONTHS, m.group(0)):
            self.phone = m.group(0).strip(" ,.")
        m = re.search(r"(?:[Nn]ame is|[Tt]his is|[Nn]ame's|I'm|I am|[Ii]t's|[Ii]t is)\s+([A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)+)", t)
        if m and not self.name:
            self.name = m.group(1)
        elif asked == "name" and not self.name:
            m = re.search(r"\b([A-Z][\w'-]+\s+[A-Z][\w'-]+)\b", t)
            words = re.sub(r"[^\w' -]", " ", t).split()
            if m:
                self.name = m.group(1)
            elif 1 < len(words) < 4 and not re.search(r"\b(yes|no|sorry|hello|what|please|thank|thanks|you|it)\b", t, re.I):
                self.name = " ".join(w.capitalize() for w in words)
        return t

    @property
    def first(self):
        return self.name.split()[0] if self.name else ""

    @property
    def last(self):
        return self.name.split()[-1] if self.name else ""


def parting(t):
    return bool(re.search(r"\b(bye|goodbye|that's all|that is all|that's it|that'll be all|that was all|nothing else|nothing more|"
                          r"no,? thank|no thanks|have a (?:good|nice|great))", t, re.I))


def thanks_only(t):
    return "?" not in t and bool(re.search(r"\b(thanks|thank you|cheers)\b", t, re.I)) and len(t.split()) < 8


def need(ear, field, ask, ask_again, side=None):
    """Ask for a thing unless it is known; once more if the answer was unclear."""
    for q in (ask, ask_again):
        if getattr(ear, field):
            return
        t = yield q
        ear.hear(t, field)
        for _ in range(3):
            answer = side(t) if side else None
            if not answer or getattr(ear, field):
                break
            t = yield answer + " " + q
            ear.hear(t, field)


def wind_up(ear, first, again, bye, welcome="You're welcome. Anything else?", side=None):
    """Say what was done, answer what is asked about it, part."""
    t = yield first
    for _ in range(8):
        ear.hear(t)
        if parting(t):
            break
        answer = side(t) if side else None
        t = yield answer or (welcome if thanks_only(t) else again())
    yield {"text": bye, "ends_call": True}


def run(talk, nudge="Hello? Are you still there?"):
    """Make a function of a conversation that is written as a generator."""
    ear = Ear()
    g = talk(ear)
    on = []

    def agent(text):
        text = text or ""
        try:
            if not on:
                on.append(1)
                hello = next(g)
                if not text.strip():
                    return hello
            elif not text.strip():
                return nudge
            return g.send(text)
        except StopIteration:
            return {"text": "Goodbye.", "ends_call": True}

    return agent


def make():
    def talk(e):
        e.hear((yield "Hello, Doctor Stein's office, what can I do for you?"))
        yield from need(e, "name", "Sure, we can move that. What's your name, please?", "Sorry, your name again?")
        yield from need(e, "dob", f"Thanks, {e.first}. And your date of birth?", "Sorry, your date of birth again?")
        e.day = ""
        yield from need(e, "day", "Okay, I found it. Which day would you like instead?", "Sorry, which day?")
        tage = dict(zip("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(), "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag".split()))
        std = {"two": "vierzehn"}
        say = lambda: f"Gut, ich habe Ihren Termin auf {tage.get(e.day, e.day)} um {std.get(e.hour, e.hour)} Uhr verschoben."
        yield from wind_up(e, say() + " Kann ich sonst noch etwas für Sie tun?", say, "Vielen Dank für Ihren Anruf, auf Wiederhören.", "Gern geschehen. Sonst noch etwas?")
    return run(talk)
