"""Whether a caller says that something is settled: it is, not it should be, not if or when it is."""

import re

_SETTLED = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|got|it['’]?s|that['’]?s|all|now|finally|both|everything['’]?s?|['’]s|['’]ve|['’]re|"
    r"\w+['’]s)(?: (?:all|now|finally|been|just|already|completely|totally|fully|officially|at last))* "
    r"(?:sorted|settled|solved|resolved|fixed|repaired|finished|completed|complete|closed|done|dealt with|taken care of|wrapped up|sold|"
    r"paid off|over and done|off the table|called off|gone through|arrived safely|"
    r"working (?:again|now|fine|perfectly)|back to normal|all set)\b"
    r"|\b(?:went|gone|came) through\b|\bworks (?:again|now|fine|perfectly)\b"
    r"|\b(?:i|we|they|he|she)(?:['’]ve| have)? (?:finally |just |already )?(?:sorted|settled|solved|resolved|fixed|finished|completed|"
    r"closed|sold|signed off) (?:it|that|this|the|my|our|on)\b",
    re.I,
)
_OVER = re.compile(
    r"\bno longer (?:a problem|an issue|needed|relevant|necessary|matters|interested|need)\b"
    r"|\byou can (?:close|drop|forget(?: about)?|cross|tick|strike|take) (?:it|that|this|the|my|our)\b"
    r"|\bnothing (?:more|else|left) to (?:do|be done)\b",
    re.I,
)
# What keeps it from being so: denied, wished, asked, conditional, to come.
_NOT_YET = re.compile(
    r"\b(?:not|never|isn['’]?t|aren['’]?t|wasn['’]?t|hasn['’]?t|haven['’]?t|won['’]?t|can['’]?t|until|till|unless|if|when|once|whether|want|"
    r"wants|wanted|need|needs|would|could|can|should|must|please|hope|hopefully|hoping|to be|get|getting|still|almost|nearly|half|yet|will|"
    r"going to|gonna|soon|tomorrow|next|before|supposed|thought|said|says|promised|instead)\b",
    re.I,
)


_CLAUSES = re.compile(r"(?<=[,;:])\s|\b(?:but|and|so)\b")


def settled_parts(sentence: str) -> list[str]:
    """The clauses that say so; the others of the sentence may say otherwise of something else."""
    if "?" in sentence:
        return []
    clauses = _CLAUSES.split(sentence)
    return [clause for clause in clauses if _OVER.search(clause) or (_SETTLED.search(clause) and not _NOT_YET.search(clause))]
