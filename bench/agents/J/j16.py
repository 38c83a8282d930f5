import re

SCENARIO = "edge_two_requests"
CAUSE = "agent"
WHAT = "says it set the reminder, but only the invoice is ordered; there is no call for the reminder"


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
    s = {"met": False, "name": "", "dob": "", "heard": False, "done": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return {"text": "Are you still there?"}
            s["met"] = True
            return {"text": "Hello, customer office. How can I help you?"}
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        s["dob"] = dob_in(text) or s["dob"]
        s["heard"] = s["heard"] or "invoice" in low or "remind" in low
        if s["done"]:
            if "send" in low and "what" in low:
                return {"text": "The invoice for March."}
            if "remind" in low and "what" in low:
                return {"text": "I will remind you to call Dana on Friday."}
            if parting(text):
                return {"text": "You're welcome. Goodbye!", "ends_call": True}
            return {"text": "Is there anything else?"}
        if parting(text):
            return {"text": "Goodbye!", "ends_call": True}
        if not s["heard"]:
            return {"text": "What can I do for you?"}
        if not s["name"]:
            return {"text": "Of course. What is your name, please?"}
        s["done"] = True
        return {"text": "Thank you. I have sent you the invoice for March, and I have set a reminder to call Dana on Friday. "
                        "Is there anything else?",
                "tool_calls": [{"name": "send_invoice", "arguments": {"customer": s["name"], "month": "March"}}]}

    return agent
