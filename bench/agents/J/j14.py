import re

SCENARIO = "edge_misheard_name"
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


def parting(text):
    return bool(re.search(r"\b(?:good-?)?bye\b|that(?:'s| is| was|'ll be) all\b|nothing else|that's everything", text.lower()))

def make():
    s = {"met": False, "name": "", "message": "", "taken": False, "spelled": False}

    def spell(word):
        return ", ".join(word.upper())

    def agent(text):
        if not text.strip():
            if s["met"]:
                return "Are you still on the line?"
            s["met"] = True
            return "Doctor Lin's office, Margaret speaking. The doctor is with a patient at the moment; may I help?"
        low = text.lower()
        s["name"] = name_in(text) or s["name"]
        letters = re.search(r"\b(?:[A-Z][ ,.-]+){3,}[A-Z]\b", text)
        if letters:
            first = re.sub(r"[^A-Z]", "", letters.group(0)).capitalize()
            last = s["name"].split()[-1] if s["name"] else ""
            s["name"] = (first + " " + last).strip()
        if re.search(r"tell|that i called|message|let .* know", low) and not s["taken"] and "what will" not in low:
            s["message"] = "that you called"
        if s["taken"]:
            if re.search(r"what will|what exactly", low):
                return f"I will tell Dr. Lin that {s['name']} called."
            if letters:
                return f"{s['name']}, {spell(s['name'].split()[0])}. Yes, that's how I have it here."
            if parting(text):
                return {"text": "Thank you for calling, goodbye.", "ends_call": True}
            return "Is there anything you'd like me to add?"
        if parting(text):
            return {"text": "Goodbye.", "ends_call": True}
        if not s["message"]:
            return "What would you like me to pass on to the doctor?"
        if not s["name"]:
            return "Gladly. And your name is?"
        s["taken"] = True
        first, last = s["name"].split()[0], s["name"].split()[-1]
        return (f"Let me make sure I have you right: {first}, {spell(first)}; {last}, {spell(last)}. "
                f"I've written the message down: {s['name']} called for Dr. Lin. Is there anything you'd like me to add?")

    return agent
