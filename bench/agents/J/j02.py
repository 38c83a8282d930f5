import re

SCENARIO = "cancel_appointment"
CAUSE = ""
WHAT = ""


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def day_in(text):
    found = [w for w in re.findall(r"[a-z]+", text.lower()) if w in DAYS]
    return found[-1].capitalize() if found else ""


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
    caller = {"name": "", "dob": ""}
    order = {"day": "", "cancel": False, "done": False, "greeted": False}

    def agent(text):
        if not text.strip():
            if order["greeted"]:
                return {"text": "I am still on the line, should you wish to continue."}
            order["greeted"] = True
            return {"text": "Office of Doctors Hartmann and Sato. How may I be of assistance?"}
        low = text.lower()
        caller["name"] = name_in(text) or caller["name"]
        caller["dob"] = dob_in(text) or caller["dob"]
        order["cancel"] = order["cancel"] or "cancel" in low
        if not order["done"]:
            order["day"] = day_in(text) or order["day"]
        if order["done"]:
            if re.search(r"what exactly|which|what did you", low):
                return {"text": f"I cancelled your appointment on {order['day']}, sir. Nothing else was changed."}
            if parting(text) or re.match(r"no\b", low):
                return {"text": "Thank you for informing us. I wish you a pleasant day. Goodbye.", "ends_call": True}
            return {"text": f"The cancellation for {order['day']} stands. May I be of further assistance?"}
        if parting(text) and not order["cancel"]:
            return {"text": "Goodbye.", "ends_call": True}
        if not order["cancel"]:
            return {"text": "Certainly. Please state what you would like us to do."}
        if not order["day"]:
            return {"text": "Of course. On what day is the appointment that you wish to cancel?"}
        if not caller["name"]:
            return {"text": "Certainly. May I have your full name, please?"}
        if not caller["dob"]:
            return {"text": f"Thank you, {caller['name']}. For our records, may I also have your date of birth?"}
        order["done"] = True
        return {
            "text": f"Thank you. Your appointment on {order['day']} has been cancelled. There is no charge. "
                    "May I be of further assistance?",
            "tool_calls": [{"name": "cancel_appointment",
                            "arguments": {"name": caller["name"], "dob": caller["dob"], "day": order["day"]}}],
        }

    return agent
