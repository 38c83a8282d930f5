"""The reader by rules: deterministic, offline, free; the default where no model is set up."""

from aftercall.llm.rules.reader import RulesReader

__all__ = ["RulesReader"]
