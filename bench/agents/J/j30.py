import re

SCENARIO = "leave_a_message"
CAUSE = ""
WHAT = ""


NO_NAME = set("""I Hi Hello Yes No Oh Ok Okay Please Thank Thanks Good Sorry My The Dr Doctor Lin Blue Harbor Corner
Main Street Pharmacy Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
July August September October November December Well Then Actually Sure""".split())


def name_in(text):
    for first, last in re.findall(r"\b(?=([A-Z][a-z]+) ([A-Z][a-z]+)\b)", text):
        if first not in NO_NAME and last not in NO_NAME:
            return first + " " + last
    return ""


DIGIT = "zero|oh|one|two|three|four|five|six|seven|eight|nine|\\d"


def phone_in(text):
    m = re.search(r"(?:\b(?:%s)\b[ ,-]*){5,}|\d[\d -]{4,}\d" % DIGIT, text, re.I)
    return m.group(0).strip(" ,-") if m else ""


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    pad = {"name": "", "phone": "", "message": ""}
    s = {"met": False, "noted": False, "tries": 0}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "I haven't gone anywhere."
            s["met"] = True
            return "Dr. Lin's secretary. She's in theatre until noon, I'm afraid."
        low = text.lower()
        pad["name"] = name_in(text) or pad["name"]
        pad["phone"] = phone_in(text) or pad["phone"]
        m = re.search(r"\blin\b.*?\bthat (.+?)[.!?]*$", text, re.I)
        if m and not s["noted"]:
            pad["message"] = m.group(1)
        if s["noted"]:
            if re.search(r"what will|what exactly", low):
                return f"That {pad['message']}. Word for word."
            return {"text": "Right you are. Goodbye.", "ends_call": True}
        if parting(text):
            return {"text": "Very well. Goodbye.", "ends_call": True}
        if not pad["message"]:
            return "What should she be told?"
        if not pad["name"]:
            s["tries"] += 1
            return "From whom, may I say?" if s["tries"] == 1 else "I missed that. Your name, please?"
        if not pad["phone"] and s["tries"] < 5:
            s["tries"] = 5
            return "And a phone number where she'd reach you?"
        s["noted"] = True
        number = f", number {pad['phone']}" if pad["phone"] else ""
        return f"Noted. For Dr. Lin, from {pad['name']}{number}: {pad['message']}. It'll be on her desk within the hour. Was that all?"

    return agent
