"""Errors of test calls. The tree is drawn in errors/__init__.py."""

from aftercall.errors.root import AftercallError


class TesterError(AftercallError):
    """A test call could not be made or judged as asked."""

    code = "tester"


class ScenarioRefused(TesterError):
    """A scenario does not fit its form; the file and the line are named."""

    code = "tester.scenario"
    exit_code = 2
    http_status = 422

    def __init__(self, source: str, line: int, field: str, reason: str) -> None:
        super().__init__(f"{source}:{line}: {field}: {reason}")
        self.source = source
        self.line = line
        self.field = field
        self.reason = reason

    def as_json(self) -> dict[str, str | int]:
        return {"file": self.source, "line": self.line, "field": self.field, "reason": self.reason}


class DialRefused(TesterError):
    """The number may not be dialled: it is not on the tester's allow-list."""

    code = "tester.dial"
    exit_code = 2


class BudgetSpent(TesterError):
    """The tester's spending limit would be passed; no further call is made."""

    code = "tester.budget"


class LineFailed(TesterError):
    """The agent under test could not be reached, or the line to it broke."""

    code = "tester.line"
    retryable = True
