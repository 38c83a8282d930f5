import re

SCENARIO = "edge_two_requests"
CAUSE = "tester"
WHAT = "asks rightly for an email address for the invoice; the script has none, so it cannot be sent"


NO_NAME = set("""I Hi Hello Yes No Oh Ok Okay Please Thank Thanks Good Sorry My The Dr Doctor Lin Blue Harbor Corner
Main Street Pharmacy Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June
July August September October November December Well Then Actually Sure""".split())


def name_in(text):
    for first, last in re.findall(r"\b(?=([A-Z][a-z]+) ([A-Z][a-z]+)\b)", text):
        if first not in NO_NAME and last not in NO_NAME:
            return first + " " + last
    return ""


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"met": False, "name": "", "heard": False, "email": "", "tries": 0, "reminded": False}

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Are you still there?"
            s["met"] = True
            return "Hello, accounts office. How can I help you?"
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        s["heard"] = s["heard"] or "invoice" in low
        m = re.search(r"\S+@\S+|\w+ at \w+ dot \w+", text)
        s["email"] = m.group(0) if m else s["email"]
        if parting(text):
            return {"text": "Thank you. Goodbye.", "ends_call": True}
        if "remind" in low and "what" in low and s["reminded"]:
            return "I will remind you to call Dana on Friday."
        if not s["heard"]:
            return "What can I do for you?"
        if not s["name"]:
            return "Of course. What is your name, please?"
        if not s["reminded"]:
            s["reminded"] = True
            if not s["email"]:
                s["tries"] = 1
                return "Thank you. I have noted the reminder to call Dana on Friday. To what email address should the invoice go?"
        if not s["email"]:
            s["tries"] += 1
            if s["tries"] == 2:
                return "We send invoices by email only. Which email address may I use?"
            return "I'm sorry, I cannot send the invoice without an email address. Please call us again when you have one."
        return f"The invoice for March is on its way to {s['email']}. Is there anything else?"

    return agent
