"""A linear model that tells what each clause of a caller does: weights from a file, no library.

| label | the caller … |
|---|---|
| R | asks for something |
| D | says more about a request |
| X | changes something of a request |
| W | calls a request off |
| Y, NO | takes or declines what the agent offers |
| O | says anything else |
"""

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from aftercall.english.stems import stems
from aftercall.llm.rules.features import LabelHistory, TalkTurn, list_features

WEIGHTS_FILE = "weights.json"
SCALE = 50  # weights are kept as whole numbers
Labels = dict[str, float]


class ClauseModel:
    """Multinomial logistic regression over names of features."""

    def __init__(
        self,
        labels: Sequence[str],
        bias: Sequence[float],
        weights: dict[str, Sequence[float]],
    ) -> None:
        self.labels = labels
        self.bias = bias
        self.weights = weights

    def weigh(self, features: Sequence[str]) -> Labels:
        """The probability of each label."""
        sums = list(self.bias)
        for feature in set(features):
            for index, weight in enumerate(self.weights.get(feature, ())):
                sums[index] += weight
        top = max(sums)
        odds = [math.exp((each - top) / SCALE) for each in sums]
        total = sum(odds)
        return {
            label: odd / total for label, odd in zip(self.labels, odds, strict=True)
        }

    def label_clauses(self, talk: Sequence[TalkTurn]) -> dict[tuple[int, int], Labels]:
        """Of each clause of the caller, by turn and place; each decision bears on the next."""
        history, found = LabelHistory(), {}
        for at, turn in enumerate(talk):
            if turn.speaker != "caller":
                continue
            for index, clause in enumerate(turn.clauses):
                about = stems(clause.text)
                features = list_features(talk, at, index)
                features += history.list_features(at, about)
                labels = self.weigh(features)
                history.add(at, max(labels, key=labels.__getitem__), about)
                found[at, index] = labels
        return found


@cache
def load_clause_model() -> ClauseModel:
    text = files(__package__).joinpath(WEIGHTS_FILE).read_text("utf-8")
    kept = json.loads(text)
    return ClauseModel(kept["labels"], kept["bias"], kept["weights"])
