SCENARIO = "opening_hours"
CAUSE = ""
WHAT = ""

import re

_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_HOURS = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUM = "zero|oh|" + _HOURS
_NOT_A_NAME = set((_DAYS + "|" + _MONTHS).split("|")) | set(
    "blue harbor corner pharmacy main street doctor dr lin then good before sorry hello hi yes no sure okay ok please thank thanks "
    "well actually and my it its the we oh right of course appointment book ignore list can could do what when which so just at "
    "this that yeah fine ten is there a i you dana goodbye bye great".split())


def day_in(text):
    found = re.findall(rf"\b({_DAYS})\b", text.lower())
    return found[-1].capitalize() if found else ""


def hour_in(text):
    found = re.findall(rf"\bat ({_HOURS}|\d{{1,2}}(?::\d\d)?)\b", text.lower())
    return found[-1] if found else ""


def dob_in(text):
    m = re.search(rf"\b({_MONTHS}) \w+,? \d{{4}}", text, re.I)
    return m.group(0) if m else ""


def phone_in(text):
    m = re.search(rf"\b(?:(?:{_NUM}|\d)[\s,\-]*){{5,}}", text.lower())
    return m.group(0).strip(" ,.-") if m else ""


def name_in(text, asked=False):
    m = re.search(r"(?:[Nn]ame is|[Nn]ame's|[Tt]his is|[Ii]t's|[Ii]t is|I'm|I am) ([A-Z][a-z]+(?: [A-Z][a-z]+)?)", text)
    if m and m.group(1).split()[0].lower() not in _NOT_A_NAME:
        return m.group(1)
    if not asked:
        return ""
    for a, b in re.findall(r"\b(?=([A-Z][a-z]+) ([A-Z][a-z]+)\b)", text):
        if a.lower() not in _NOT_A_NAME and b.lower() not in _NOT_A_NAME:
            return a + " " + b
    single = [w for w in re.findall(r"\b[A-Z][a-z]+\b", text) if w.lower() not in _NOT_A_NAME]
    return single[0] if single and len(text.split()) < 5 else ""


def leaving(text):
    t = text.lower().replace("\u2019", "'").strip()
    if t.strip(" .!") in ("no", "nope", "thank you", "thanks"):
        return True
    return bool(re.search(r"\b(bye|goodbye|that's all|that is all|that's everything|that was all|that's it|nothing else|no,? thanks?|"
                          r"that'll be all|that will be all|all for (now|today)|have a (nice|good|great) (day|one))\b", t))


def new_state():
    return {"met": False, "asked": {}, "last": "", "done": False, "idle": 0,
            "name": "", "dob": "", "phone": "", "day": "", "hour": ""}


def learn(s, text):
    n = name_in(text, asked=s["last"] == "name")
    if n and (len(n.split()) > 1 or not s["name"]):
        s["name"] = n
    s["dob"] = dob_in(text) or s["dob"]
    s["phone"] = phone_in(text) or s["phone"]
    s["day"] = day_in(text) or s["day"]
    s["hour"] = hour_in(text) or s["hour"]


def need(s, field, *ways):
    """The next way to ask for something that is still unknown; nothing if it is known or was asked often enough."""
    n = s["asked"].get(field, 0)
    if s.get(field) or n >= len(ways):
        return ""
    s["asked"][field] = n + 1
    s["last"] = field
    return ways[n]


def first_name(s):
    return s["name"].split()[0] if s["name"] else ""


def last_name(s):
    return s["name"].split()[-1] if s["name"] else ""


def end(words, **more):
    return {"text": words, "ends_call": True, **more}


HOURS = "We're open Monday to Friday from eight in the morning until six in the evening, and on Saturdays from nine until noon. Sundays we're closed"


def make():
    s = new_state()

    def agent(text):
        if not s["met"]:
            s["met"] = True
            if not text:
                return "Hello, hello! Millbrook Opticians here, and I hope the rain hasn't found you yet. What can I do for you?"
        if not text:
            return "Are you still there, my dear?"
        t = text.lower()
        if leaving(text):
            return end("It was nice chatting with you. Stay dry, and goodbye!")
        if re.search(r"\b(open|close|hours|when)\b", t):
            again = s["done"]
            s["done"] = True
            return HOURS + "." if again else "Ah, that's easily told. " + HOURS + ", we do need our roast. Is there anything else you'd like to know?"
        s["idle"] += 1
        if s["idle"] < 2:
            return "Is there anything else you'd like to know?" if s["done"] else "Sorry, I didn't quite hear. What would you like to know?"
        return end("Well, do pop in. Goodbye!")

    return agent
