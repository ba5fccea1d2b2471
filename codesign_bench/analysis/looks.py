"""Names and colours of methods and environments, and the order in which they stand: as their runs' configurations say.

Shipped colours are Okabe and Ito's, which people with colour-blindness can tell apart; every curve has a marker of its own as well.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

BASELINES = ("transform2act", "nge", "ess", "rgs")
ABLATIONS = ("transform2act", "transform2act_no_gnn", "transform2act_no_control_jsmlp", "transform2act_no_jsmlp")
CONTINUOUS = ("transform2act_attributes", "continuous", "expert")
"""The methods of the paper's three figures of curves, in its order."""
NEWER = ("bodygen", "transform2act_credit", "bodygen_no_credit")
"""Those since 2022."""
ORDER = (*BASELINES, *NEWER, "ess_strict", *ABLATIONS[1:], *CONTINUOUS)
_MARKERS = dict(zip(ORDER, "os^D*8H<vPX>ph", strict=True))
ENVS = (
    *("locomotion2d", "locomotion3d", "swimmer", "gap"),
    *("crawler", "terraincrosser", "cheetah", "swimmer_bodygen"),
    *("glider_regular", "glider_medium", "glider_hard", "walker_regular", "walker_medium", "walker_hard"),
    *("pusher", "stepper", "stepper_hard"),
)
"""Transform2Act's, BodyGen's, and those of Stackelberg PPO."""
_SPARE = ("#999933", "#AA4499", "#44AA99", "#117733", "#CC6677", "#6699CC", "#661100", "#B8860B")
_SPARE_MARKERS = "<>*dH8^s"
_SPARE_DASHES = ("-", "--", "-.", ":")


@dataclass(frozen=True)
class Look:
    """How a method is shown; `dashes` is matplotlib's line style."""

    label: str
    colour: str
    marker: str
    dashes: str = "-"


def looks(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Look]:
    """Of methods by name, in the order of figures. Label and colour are those of the method's configuration, unless a method before it
    has them (a variant that was only renamed): then it is called by its name, in a spare colour."""
    found: dict[str, Look] = {}
    spare = 0
    for name in ordered(configs):
        label, colour = configs[name].get("label"), configs[name].get("colour")
        if not (isinstance(label, str) and label) or label in {look.label for look in found.values()}:
            label = name
        if isinstance(colour, str) and re.fullmatch("#[0-9A-Fa-f]{6}", colour) and colour not in {look.colour for look in found.values()}:
            found[name] = Look(label, colour, _MARKERS.get(name) or _SPARE_MARKERS[len(found) % len(_SPARE_MARKERS)])
        else:
            i, dashes = spare % len(_SPARE), _SPARE_DASHES[spare // len(_SPARE) % len(_SPARE_DASHES)]
            found[name], spare = Look(label, _SPARE[i], _MARKERS.get(name) or _SPARE_MARKERS[i], dashes), spare + 1
    return found


def ordered(methods: Iterable[str]) -> tuple[str, ...]:
    """The paper's methods in its order, then the others by name."""
    names = set(methods)
    return tuple(name for name in ORDER if name in names) + tuple(sorted(names - set(ORDER)))


def ordered_envs(envs: Iterable[str]) -> tuple[str, ...]:
    names = set(envs)
    return tuple(name for name in ENVS if name in names) + tuple(sorted(names - set(ENVS)))


def on_the_command_line(found: Mapping[str, Look]) -> list[str]:
    """A sentence with the names of the methods whose labels do not contain them."""

    def letters(text: str) -> str:
        return re.sub(r"\W|_", "", text.casefold())

    hidden = [f"{look.label} is {name}" for name, look in found.items() if letters(name) not in letters(look.label)]
    return [f"On the command line, {', '.join(hidden)}."] if hidden else []
