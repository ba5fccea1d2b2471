"""The joint index of Transform2Act (appendix C): a joint is named by the path that leads to it from the root.

The root is '0'. Going to the i-th child (1-based) writes i to the left of the parent's string; the root's string counts
as empty there. Read in base (most children of any joint + 1), the string becomes an integer that is the same joint in
every design.
"""

from collections.abc import Sequence

ROOT = "0"


def index_strings(parents: Sequence[int]) -> list[str]:
    """The index string of every node; `parents[0]` is -1 and parents come before their children."""
    strings = [ROOT]
    children = [0] * len(parents)
    for parent in parents[1:]:
        children[parent] += 1
        path = "" if parent == 0 else strings[parent]
        strings.append(f"{children[parent]}{path}")
    return strings


def index_integers(parents: Sequence[int], base: int) -> list[int]:
    """The index strings read as integers in the given base."""
    return [int(string, base) for string in index_strings(parents)]


def reachable_strings(root_children: int, max_children: int, max_depth: int) -> list[str]:
    """Every index string that a design can contain, breadth first: root, depth 1, depth 2, ...

    The root never adds a child, so it has exactly `root_children`; every joint above `max_depth` has at most
    `max_children`.
    """
    strings = [ROOT]
    level = [""]
    for depth in range(1, max_depth + 1):
        width = root_children if depth == 1 else max_children
        level = [f"{i}{path}" for path in level for i in range(1, width + 1)]
        strings += level
    return strings
