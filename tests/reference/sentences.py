"""What an error message to the user looks like."""

from __future__ import annotations


def assert_one_sentence(error: BaseException, *fragments: str) -> None:
    """One line that ends with a full stop, is short enough to read, and holds the given fragments."""
    text = str(error)
    assert "\n" not in text
    assert text.endswith("."), text
    assert not text.endswith(".."), text
    assert len(text) < 600, f"{len(text)} characters"
    for fragment in fragments:
        assert fragment in text, text
