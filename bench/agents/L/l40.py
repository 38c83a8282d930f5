SCENARIO = "leave_a_message"
CAUSE = "tester"
WHAT = "asks for the sample number of the results; the script has no answer to that"

# odd wording; the agent is right, the script is too short
import re

WEEK = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
MONTH = "january|february|march|april|may|june|july|august|september|october|november|december"
NUM = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
STOP = set((WEEK + "|" + MONTH).split("|")) | set(
    "book please sorry yes no hi hello corner pharmacy main street blue harbor dr lin good and then thank thanks actually "
    "appointment it my the dana".split())


class Memo(dict):
    def __missing__(self, key):
        return ""


def name_in(text):
    for run in re.findall(r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+", text):
        words = [w for w in run.split() if w.lower() not in STOP or (w == "Dana" and "Whitfield" in run)]
        if len(words) >= 2:
            return " ".join(words)
    return ""


def asks_back(text):
    return bool(re.search(
        r"have me down|what exactly|which day and time|what will you|what happens|do you take my|what did (i|we|you)\b"
        r"|from when to when|when is my|is my appointment made|say that again|pardon|repeat", text.lower()))


def leaving(text):
    return bool(re.search(
        r"\b(good)?bye\b|that's all|that is all|that's it|that's everything|nothing else|\bno,? thank|that was all|that will be all"
        r"|have a (good|nice|great)|^\W*no\W*$|^(okay|ok|great|perfect|good|alright|all right)?\W*(thanks|thank you)\b",
        text.lower()))


def read(s, text):
    low = text.lower()
    days = re.findall(rf"\b({WEEK})\b", low)
    if days:
        s["day"] = days[-1].capitalize()
    hours = re.findall(rf"\bat ({NUM})\b", low)
    if hours:
        s["hour"] = hours[-1]
    born = re.search(rf"\b(?:{MONTH})\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}", text, re.I)
    if born:
        s["dob"] = born[0]
    phone = re.search(r"\b(?:(?:zero|one|two|three|four|five|six|seven|eight|nine)\b[\s,]*){5,}", low)
    if phone:
        s["phone"] = phone[0].strip(" ,")
    task = re.search(r"remind me to (.+?)[.!?]?$", text.strip())
    if task:
        s["task"] = task[1].replace(" my ", " your ")
    asked = s["asked"]
    if not s["name"]:
        found = name_in(text)
        if not found and asked == "name" and len(text.split()) <= 4 and not days and not re.search("know|sorry|what|why|yes|no\\b", low):
            found = text.strip(" .,!")
        s["name"] = found
    if asked in ("why", "reason", "dose", "pharmacy", "ok", "medicine") and not s[asked] and not asks_back(text):
        s[asked] = text.strip()


def desk(hello, wish, ask, order, done, again, bye, more="Is there anything else I can help you with?", changed="",
         unclear="What can I do for you?", tools=None, hook=None, hang=True, finish=None):
    """One call at one desk: listens, asks for what is missing, does it, says so, and parts."""
    s = Memo()

    def fill(phrase):
        s["first"], s["last"] = (s["name"].split() or [""])[0], (s["name"].split() or [""])[-1]
        said = phrase(s) if callable(phrase) else phrase
        said = said.format_map(s)
        pre, s["pre"] = s["pre"], ""
        return pre + said

    def end():
        s["over"] = True
        return {"text": fill(bye), "ends_call": True} if hang else fill(bye)

    def agent(text):
        if not text.strip():
            if s["started"]:
                return "Hello, are you still there?"
            s["started"] = True
            return hello
        s["started"] = True
        read(s, text)
        if hook:
            said = hook(s, text)
            if isinstance(said, dict):
                return said
            if said:
                return fill(said)
        if s["done"]:
            if changed and (s["day"], s["hour"]) != s["kept"]:
                s["kept"] = (s["day"], s["hour"])
                return {"text": fill(changed), "tool_calls": tools(s)} if tools else fill(changed)
            if asks_back(text):
                return fill(again)
            if leaving(text):
                return end()
            s["rest"] = (s["rest"] or 0) + 1
            return end() if s["rest"] > 2 else fill(more)
        if re.search(wish, text.lower()):
            s["wish"] = True
        if not s["wish"]:
            if leaving(text):
                return end()
            return fill(unclear)
        for key in order:
            if not s[key]:
                s["n " + key] = n = (s["n " + key] or 0) + 1
                if n > 3:
                    s[key] = "not given"
                    continue
                s["asked"] = key
                wordings = ask[key] if isinstance(ask[key], (list, tuple)) else [ask[key]]
                return fill(wordings[min(n, len(wordings)) - 1])
        s["asked"], s["done"], s["kept"] = "", True, (s["day"], s["hour"])
        if finish:
            finish(s)
        return {"text": fill(done), "tool_calls": tools(s)} if tools else fill(done)

    agent.memo = s
    return agent


def make():
    def hook(s, text):
        if s["name"] and s["phone"] and not s["sample"]:
            number = re.search(r"\b[A-Z]{0,3}-?\d{4,}\b", text)
            if number:
                s["sample"] = number[0]
                return
            if leaving(text):
                return {"text": "As you like. Ring once more when you have the slip by you. Goodbye!", "ends_call": True}
            s["n sample"] = (s["n sample"] or 0) + 1
            if s["n sample"] == 1:
                return "Obliged, {name}. Now, the doctor has a mountain of those. What does the slip say for a sample number?"
            if s["n sample"] == 2:
                return "Without it the note would only go round in circles, and I'd sooner not pretend otherwise. Which sample number is it, please?"
            return {"text": "Then it'd be a kindness to us both if you rang once more with the slip by you. I've put nothing down for now. Goodbye!",
                    "ends_call": True}

    return desk(
        "Lin's anteroom, and you have my whole attention.",
        r"tell|message|pass",
        {"name": ["Results, my word. Whose voice is this? Your name, please."], "phone": ["And a number where you may be reached?"]},
        ["name", "phone"],
        "Done and dusted: Dr. Lin shall hear that the lab results have arrived. Else?",
        "I'll tell Dr. Lin that the lab results have arrived.",
        "Go well. Goodbye!",
        more="Else?",
        hook=hook,
    )
