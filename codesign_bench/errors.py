"""Errors that are addressed to the user: one sentence that says what was wrong and what is allowed."""

from collections.abc import Collection
from difflib import SequenceMatcher


def nearest(word: str, known: Collection[str]) -> str:
    """The names that are spelt like a word, to follow it in a sentence: ', nearest is gap' for gpa; nothing if there are none."""
    last = word.rpartition(".")[2]
    pairs = {name: ((word, name), (last, name.rpartition(".")[2])) for name in known}
    score = {name: max(SequenceMatcher(None, *pair).ratio() for pair in both) for name, both in pairs.items()}
    least = max(0.65, max(score.values(), default=0.0) - 0.1)
    found = sorted((name for name in score if score[name] >= least), key=lambda name: -score[name])[:3]
    return f", nearest {'are' if len(found) > 1 else 'is'} {', '.join(found)}" if found else ""


class CodesignError(Exception):
    """Base of every error that the command line reports as one sentence with exit code 2."""


class ConfigError(CodesignError, ValueError):
    """A configuration names something unknown or asks for something impossible."""


class DesignError(CodesignError, ValueError):
    """A design breaks a rule of its design space, or a file does not hold a design."""


class RenderError(CodesignError, RuntimeError):
    """No way was found to draw a picture on this machine."""


class BudgetError(CodesignError, RuntimeError):
    """A request would take more steps than the run's budget has left."""


class StorageError(CodesignError, OSError):
    """A file of a run cannot be written or is not as it was left."""


class WorkerError(CodesignError, RuntimeError):
    """A worker process died or raised an error."""
