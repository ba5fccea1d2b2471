"""Names and colours of methods and environments, and the order in which they stand: as their runs' configurations say.

Shipped colours are Okabe and Ito's, which people with colour-blindness can tell apart; every curve has a marker of its own as well.
"""

import re
import zlib
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

BASELINES = ("transform2act", "nge", "ess", "rgs")
ABLATIONS = ("transform2act", "transform2act_no_gnn", "transform2act_no_control_jsmlp", "transform2act_no_jsmlp")
CONTINUOUS = ("transform2act_attributes", "continuous", "expert")
"""The methods of the paper's three figures of curves, in its order."""
NEWER = ("bodygen", "stackelberg", "transform2act_credit", "transform2act_stackelberg", "bodygen_no_credit")
"""Those since 2022."""
ORDER = (*BASELINES, "derl", *NEWER, "ess_strict", *ABLATIONS[1:], *CONTINUOUS)
_MARKERS = dict(zip(ORDER, (*"os^Dd*", r"$\spadesuit$", "8", r"$\clubsuit$", *"H<vPX>ph"), strict=True))
ENVS = (
    *("locomotion2d", "locomotion3d", "swimmer", "gap"),
    *("crawler", "terraincrosser", "cheetah", "swimmer_bodygen"),
    *("glider_regular", "glider_medium", "glider_hard", "walker_regular", "walker_medium", "walker_hard"),
    *("pusher", "stepper", "stepper_hard"),
)
"""Transform2Act's, BodyGen's, and those of Stackelberg PPO."""
_SPARE = ("#999933", "#AA4499", "#44AA99", "#117733", "#CC6677", "#6699CC", "#661100", "#B8860B")
_SPARE_MARKERS = "phXP8DHs"
LONGEST = 80
"""Letters of a label or title; whoever sends longer ones is called by name."""
_SPARE_DASHES = ("-", "--", "-.", ":")
_OTHER_TRACK = "-."


@dataclass(frozen=True)
class Look:
    """How a method is shown; `dashes` is matplotlib's line style."""

    label: str
    colour: str
    marker: str
    dashes: str = "-"


def looks(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Look]:
    """Of methods by name, in the order of figures. Label and colour are those of the method's configuration, unless a method before it
    has them (a variant that was only renamed): then it is called by its name, in a spare colour. On another track than the paper's a
    method has its own colour in another line, and its track in brackets."""
    found: dict[str, Look] = {}
    spare = 0
    for name in ordered(configs):
        (base, track), label, colour = split(name), configs[name].get("label"), configs[name].get("colour")
        label = (label if isinstance(label, str) and 0 < len(label) <= LONGEST else base) + (f" ({track})" if track else "")
        label = name if label in {look.label for look in found.values()} else label
        marker = _MARKERS.get(base) or _spare_marker(base, {look.marker for look in found.values()})
        dashes = _OTHER_TRACK if track else "-"
        taken = {(look.colour, look.dashes) for look in found.values()}
        if isinstance(colour, str) and re.fullmatch("#[0-9A-Fa-f]{6}", colour) and (colour, dashes) not in taken:
            found[name] = Look(label, colour, marker, dashes)
        else:
            i, dashes = spare % len(_SPARE), _SPARE_DASHES[spare // len(_SPARE) % len(_SPARE_DASHES)]
            found[name], spare = Look(label, _SPARE[i], marker, dashes), spare + 1
    return found


def _spare_marker(name: str, taken: Set[str]) -> str:
    """The same in every figure, unless another method of the figure has it."""
    first = zlib.crc32(name.encode())
    choices = [_SPARE_MARKERS[(first + i) % len(_SPARE_MARKERS)] for i in range(len(_SPARE_MARKERS))]
    return next((marker for marker in choices if marker not in taken), choices[0])


def split(method: str) -> tuple[str, str]:
    """A method's name (see reading.Run) as that of its configuration and its track, empty for the paper's."""
    base, _, track = method.partition(" track=")
    return base, track


def ordered(methods: Iterable[str]) -> tuple[str, ...]:
    """The paper's methods in its order, then the others by name, each with its tracks behind it."""

    def place(name: str) -> tuple[int, str, str]:
        base, track = split(name)
        return (ORDER.index(base), "", track) if base in ORDER else (len(ORDER), base, track)

    return tuple(sorted(set(methods), key=place))


def ordered_envs(envs: Iterable[str]) -> tuple[str, ...]:
    names = set(envs)
    return tuple(name for name in ENVS if name in names) + tuple(sorted(names - set(ENVS)))


def on_the_command_line(found: Mapping[str, Look]) -> list[str]:
    """A sentence with the names of the methods whose labels do not contain them."""

    def letters(text: str) -> str:
        return re.sub(r"\W|_", "", text.casefold())

    hidden = [f"{look.label} is {name}" for name, look in found.items() if letters(name) not in letters(look.label)]
    return [f"On the command line, {', '.join(hidden)}."] if hidden else []
