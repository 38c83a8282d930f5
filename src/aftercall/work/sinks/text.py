"""Spoken words made fit for files and pages: quoted, so that they cannot pass for structure."""

import json
import re
import unicodedata

_GAPS = re.compile(r"[\W_]+")
MAX_SLUG_CHARS = 60  # characters; in any script that is fewer bytes than a file name may have


def slug(text: str) -> str:
    """A file name of small letters and digits of any script: no path, no dot, no meta character
    survives.
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return _GAPS.sub("-", plain).strip("-")[:MAX_SLUG_CHARS].strip("-") or "untitled"


def quote(text: str) -> str:
    """Markdown's block quote: a heading, a rule or front matter within stays words."""
    return "\n".join(f"> {escape(line)}" for line in text.splitlines()) if text else ""


def escape(text: str) -> str:
    """One line without HTML and links; comments cannot be forged, nobody is mentioned."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`\[\]|])", r"\\\1", text).replace("@", "@\u200b")


def yaml_string(text: str) -> str:
    """JSON's strings are YAML's, with nothing left to interpret."""
    return json.dumps(text, ensure_ascii=False)
