"""Design + scene -> MJCF text. The only file that knows MJCF.

Bodies and hinges are named by their joint index ("0" is the root). Bodies, hinges and motors come depth first, whatever the
order of the design's nodes, so designs with the same skeleton give the same model but for their attributes.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from xml.etree import ElementTree

from codesign_bench.design import colours
from codesign_bench.design.graph import BONE, GEAR, RADIUS, START_EXTENSION, Design, FixedGeom
from codesign_bench.design.scene import Ground, Part, PartJoint, Scene
from codesign_bench.design.space import DesignSpace

HALF_WIDTH = 0.5
"""Metres of terrain to either side of the plane in which a robot moves."""


def to_mjcf(design: Design, space: DesignSpace, scene: Scene, *, rendering: bool = False) -> str:
    """The MJCF text of a design in a scene. `rendering` adds materials, lights and visible joints, and changes no physics."""
    return _mjcf(design, space.physical(design.attributes).tolist(), space, scene, rendering)


def skeleton_mjcf(design: Design, space: DesignSpace, scene: Scene) -> str:
    """The same with one set of attributes for all nodes, for a model whose attributes are going to be replaced."""
    return _mjcf(design, [space.typical] * design.num_nodes, space, scene, rendering=False)


def _mjcf(design: Design, physical: list[list[float]], space: DesignSpace, scene: Scene, rendering: bool) -> str:
    topology = space.topology(design)
    bone_ends = _bone_ends(design, physical, space.plane)
    parents, offsets = design.parents.tolist(), design.joint_offset.tolist()
    axes, ranges, frictions = design.axis.tolist(), design.range.tolist(), design.friction.tolist()
    order, depths = topology.order.tolist(), topology.depth.tolist()

    def bone(node: int) -> str:
        values = physical[node]
        look = _coloured(colours.bone(depths[node])) if rendering else ""
        text = _capsule(_bone_start(values, space.plane), bone_ends[node], values[RADIUS], frictions[node], look)
        if rendering and node > 0:
            size = 1.18 * max(values[RADIUS], physical[parents[node]][RADIUS])
            text += f'<geom type="sphere" size="{size!r}" contype="0" conaffinity="0" mass="0" group="1"{_coloured(colours.HINGE)}/>'
        return text

    bodies, motors = [], []
    for node, following in zip(order[1:], [*order[2:], 0], strict=True):
        (x, y, z), (dx, dy, dz) = bone_ends[parents[node]], offsets[node]
        name = topology.names[node]
        bodies.append(
            f'<body name="{name}" pos="{x + dx!r} {y + dy!r} {z + dz!r}">'
            f'<joint name="{name}" axis="{_text(axes[node])}" range="{_text(ranges[node])}"/>{bone(node)}'
        )
        bodies.append("</body>" * (depths[node] - depths[following] + 1))
        motors.append(f'<motor joint="{name}" gear="{physical[node][GEAR]!r}"/>')
    rigid = "".join(_fixed(geom, rendering) for geom in design.root_geoms)
    before, after = _parts(scene, rendering)
    height = scene.root_height if design.start_height is None else design.start_height
    return (
        f"<mujoco>{_settings(scene)}{_looks(scene) if rendering else ''}<worldbody>{before}"
        f'<body name="0" pos="0 0 {height!r}">{_root_joints(scene, space.plane, height)}{_LIGHT if rendering else ""}{rigid}'
        f"{bone(0) if design.root_bone else ''}{''.join(bodies)}{after}</worldbody>"
        f"<actuator>{''.join(motors)}</actuator>{scene.elements}</mujoco>"
    )


def indented(mjcf: str) -> str:
    """The same for people to read, an element a line."""
    root = ElementTree.fromstring(mjcf)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _text(numbers: Iterable[float]) -> str:
    """Without signs of zeros: 0.0 and -0.0 are equal, and the text of one would be remembered for the other."""
    return _joined(tuple([number + 0.0 for number in numbers]))


@lru_cache(maxsize=4096)
def _joined(numbers: tuple[float, ...]) -> str:
    """Axes, ranges and frictions are the same few vectors over and over."""
    return " ".join(map(repr, numbers))


def _in_space(pair: list[float], plane: str) -> list[float]:
    """A vector of the task's plane as x, y, z."""
    return [pair[0], 0.0, pair[1]] if plane == "xz" else [pair[0], pair[1], 0.0]


def _bone_ends(design: Design, physical: list[list[float]], plane: str) -> list[list[float]]:
    ends = [_in_space(values[BONE], plane) for values in physical]
    if not design.root_bone:
        ends[0] = [0.0, 0.0, 0.0]
    return ends


def _bone_start(values: list[float], plane: str) -> list[float]:
    """Where the capsule begins: prolonged backwards beyond the joint, along the bone."""
    x, y = values[BONE]
    scale = -values[START_EXTENSION] / (x * x + y * y) ** 0.5
    return _in_space([x * scale, y * scale], plane)


def _capsule(start: Iterable[float], end: Iterable[float], radius: float, friction: Iterable[float], extra: str = "") -> str:
    return f'<geom type="capsule" fromto="{_text(start)} {_text(end)}" size="{radius!r}" friction="{_text(friction)}"{extra}/>'


def _coloured(colour: str) -> str:
    return f' rgba="{_text(colours.rgb(colour))} 1"'


def _fixed(geom: FixedGeom, rendering: bool) -> str:
    look = _coloured(colours.bone(0)) if rendering else ""
    if geom.start == geom.end:
        return f'<geom type="sphere" pos="{_text(geom.start)}" size="{geom.radius!r}" friction="{_text(geom.friction)}"{look}/>'
    return _capsule(geom.start, geom.end, geom.radius, geom.friction, look)


@lru_cache(maxsize=32)
def _settings(scene: Scene) -> str:
    contact = "" if scene.contacts else ' contact="disable"'
    fields = "".join(_height_field(part) for part in scene.parts if part.shape == "heights")
    return (
        f'<compiler angle="degree"/>{f"<asset>{fields}</asset>" if fields else ""}'
        f'<option integrator="RK4" timestep="{scene.timestep!r}" density="{scene.medium_density!r}" viscosity="{scene.medium_viscosity!r}" '
        f'gravity="{_text(scene.gravity)}">'
        f'<flag autoreset="disable"{contact}/></option>'
        f'<default><joint armature="{scene.joint_armature!r}" damping="{scene.joint_damping!r}" limited="true"/>'
        f'<geom condim="{scene.geom_condim}" contype="1" conaffinity="{scene.geom_conaffinity}" density="{scene.geom_density!r}" '
        f'margin="{scene.geom_margin!r}" solimp="{_text(scene.geom_solimp)}" solref="{_text(scene.geom_solref)}"/>'
        '<motor ctrllimited="true" ctrlrange="-1 1"/></default>'
    )


@lru_cache(maxsize=32)
def _root_joints(scene: Scene, plane: str, height: float) -> str:
    common = f'armature="{scene.root_armature!r}" damping="{scene.root_damping!r}" limited="false"'
    if scene.root == "free":
        return f'<joint name="root" type="free" {common}/>'
    second, across = ("0 0 1", "0 1 0") if plane == "xz" else ("0 1 0", "0 0 1")
    reference = height if plane == "xz" else 0.0
    return (
        f'<joint name="root_x" type="slide" axis="1 0 0" {common}/>'
        f'<joint name="root_{plane[1]}" type="slide" axis="{second}" ref="{reference!r}" {common}/>'
        f'<joint name="root_turn" type="hinge" axis="{across}" {common}/>'
    )


@lru_cache(maxsize=32)
def _ground(ground: Ground, rendering: bool) -> str:
    surface = f'condim="{ground.condim}" conaffinity="{ground.conaffinity}" friction="{_text(ground.friction)}"'
    look = ' material="ground"' if rendering else ""
    if ground.kind == "plane":
        return f'<geom name="ground" type="plane" pos="0 0 {ground.top!r}" size="0 0 1" {surface}{look}/>'
    if ground.kind == "gaps":
        return "".join(_block(i, span, ground, surface + look) for i, span in enumerate(ground.solid()))
    if rendering:
        return '<geom name="ground" type="plane" pos="0 0 -0.5" size="0 0 1" contype="0" conaffinity="0" material="water"/>'
    return ""


@lru_cache(maxsize=32)
def _parts(scene: Scene, rendering: bool) -> tuple[str, str]:
    """What comes before the robot (the ground and what is fixed) and after it (what can move), so that the robot's bodies, joints and
    coordinates always begin at the same place."""
    places = {part: f'pos="{_text(part.position)}" euler="{_text(part.euler)}"' for part in scene.parts}
    fixed = "".join(_part_geom(part, place, rendering) for part, place in places.items() if not part.joints)
    objects = "".join(
        f'<body name="{part.name}" {places[part]}>{"".join(map(_part_joint, part.joints))}{_part_geom(part, "", rendering)}</body>'
        for part in scene.objects
    )
    return _ground(scene.ground, rendering) + fixed, objects


def _part_geom(part: Part, place: str, rendering: bool) -> str:
    kind = f'type="hfield" hfield="{part.name}"' if part.shape == "heights" else f'type="{part.shape}" size="{_text(part.size)}"'
    surface = f'condim="{part.condim}" contype="{part.contype}" conaffinity="{part.conaffinity}" friction="{_text(part.friction)}"'
    look = (_coloured(colours.OBJECT) if part.joints else ' material="ground"') if rendering else ""
    return f'<geom name="{part.name}" {kind} {place} density="{part.density!r}" {surface}{look}/>'


def _part_joint(joint: PartJoint) -> str:
    if joint.type == "free":
        return f'<joint type="free" limited="false" damping="{joint.damping!r}" armature="{joint.armature!r}"/>'
    limits = f'limited="true" range="{_text(joint.range)}"' if joint.range is not None else 'limited="false"'
    return f'<joint type="{joint.type}" axis="{_text(joint.axis)}" {limits} damping="{joint.damping!r}" armature="{joint.armature!r}"/>'


def _height_field(part: Part) -> str:
    values = _text(value for row in part.heights for value in row)
    rows, columns = len(part.heights), len(part.heights[0])
    return f'<hfield name="{part.name}" nrow="{rows}" ncol="{columns}" size="{_text(part.size)}" elevation="{values}"/>'


def _block(i: int, span: tuple[float, float], ground: Ground, surface: str) -> str:
    """A box, and for sloped edges a leaning one at either side, whose outer face passes through the end of the span at half depth. It is
    as thick as the edge leans, which fills the wedge, and shares the upper corner of the box in the middle. It is a little narrower, so
    that pictures show one of the two where they overlap."""
    run = ground.inset(ground.top)
    (left, right), middle, half = span, ground.top - ground.thickness / 2, ground.thickness / 2
    centre, size = ((left + right) / 2, 0.0, middle), ((right - left) / 2 - run, HALF_WIDTH, half)
    text = f'<geom name="ground_{i}" type="box" pos="{_text(centre)}" size="{_text(size)}" {surface}/>'
    if run == 0:
        return text
    lean, face = math.atan2(run, half), math.hypot(run, half)
    for side, x, sign in (("left", left, -1.0), ("right", right, 1.0)):
        centre = (x - sign * run * math.cos(lean), 0.0, middle - run * math.sin(lean))
        place = f'pos="{_text(centre)}" euler="0 {-sign * math.degrees(lean)!r} 0" size="{_text((run, 0.999 * HALF_WIDTH, face))}"'
        text += f'<geom name="ground_{i}_{side}" type="box" {place} {surface}/>'
    return text


def _looks(scene: Scene) -> str:
    """Distances of what is drawn are shares of the model's extent, which parts may make as large as they like."""
    return _LOOKS + ('<statistic extent="4"/>' if scene.parts else "")


_LIGHT = '<light mode="trackcom" directional="true" pos="0 -3 4" dir="0.2 0.8 -1" diffuse="0.5 0.5 0.5" specular="0.1 0.1 0.1"/>'
_LOOKS = (
    '<visual><global offwidth="1920" offheight="1440"/><quality shadowsize="4096" offsamples="8"/>'
    '<headlight ambient="0.38 0.38 0.38" diffuse="0.25 0.25 0.25" specular="0 0 0"/><map znear="0.01" zfar="60" shadowclip="4"/></visual>'
    '<asset><texture name="sky" type="skybox" builtin="gradient" rgb1="0.93 0.96 0.99" rgb2="0.70 0.80 0.90" width="64" height="384"/>'
    '<texture name="tiles" type="2d" builtin="checker" rgb1="0.90 0.91 0.89" rgb2="0.78 0.81 0.79" width="256" height="256"/>'
    '<texture name="waves" type="2d" builtin="checker" rgb1="0.72 0.87 0.95" rgb2="0.63 0.80 0.91" width="256" height="256"/>'
    '<material name="ground" texture="tiles" texuniform="true" texrepeat="1 1"/>'
    '<material name="water" texture="waves" texuniform="true" texrepeat="0.5 0.5"/></asset>'
)
