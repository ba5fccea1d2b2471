"""codesign_bench: a benchmark of methods that optimise a robot's body and its controller together.

Importing the package registers all environments with Gymnasium: `codesign/Gap-v2` and so on.
"""

from codesign_bench import interrupts  # isort: skip (before anything else)

import ctypes.util
import os
import sys

__all__ = ["__version__", "interrupts"]
__version__ = "0.3.0"


def _register() -> None:
    """Every environment of conf/env/, also of other packages: locomotion2d as codesign/Locomotion2d-v2, glider_hard as
    codesign/GliderHard-v1."""
    from gymnasium.envs.registration import register, registry

    from codesign_bench.errors import ConfigError
    from codesign_bench.paths import env_versions

    try:
        versions = env_versions()
    except ConfigError:  # of another package's; whoever asks for an environment is told
        return
    for name, version in versions.items():
        title = "".join(word[:1].upper() + word[1:] for word in name.split("_"))
        if f"codesign/{title}-v{version}" not in registry:
            entry_point = "codesign_bench.simulation.env:TransformAndActEnv"
            register(f"codesign/{title}-v{version}", entry_point=entry_point, kwargs={"task": name})


def _choose_graphics() -> None:
    """MuJoCo reads MUJOCO_GL when it is first imported, and fails there if that names something this machine lacks.
    Headless by default: EGL, else OSMesa, else nothing (training needs neither), unless the user chose what can work."""
    choice = os.environ.get("MUJOCO_GL", "").lower().strip()
    off = choice in ("disable", "disabled", "off", "false", "0")
    on_screen = choice in ("glfw", "glx") and bool(os.environ.get("DISPLAY"))
    if sys.platform != "linux" or off or on_screen:
        return
    candidates = ["osmesa", "egl"] if choice == "osmesa" else ["egl", "osmesa"]
    libraries = {"egl": "EGL", "osmesa": "OSMesa"}
    os.environ["MUJOCO_GL"] = next((name for name in candidates if ctypes.util.find_library(libraries[name])), "disable")


_choose_graphics()
_register()
