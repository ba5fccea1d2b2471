"""codesign_bench: a benchmark of methods that optimise a robot's body and its controller together.

Importing the package registers its environments with Gymnasium, if that is installed: `codesign/Gap-v1` and so on.
"""

__version__ = "0.1.0"


def _register() -> None:
    try:
        from gymnasium.envs.registration import register, registry
    except ImportError:
        return
    names = {"Locomotion2d": "locomotion2d", "Locomotion3d": "locomotion3d", "Swimmer": "swimmer", "Gap": "gap"}
    for title, task in names.items():
        name = f"codesign/{title}-v1"
        if name not in registry:
            register(name, entry_point="codesign_bench.simulation.env:TransformAndActEnv", kwargs={"task": task})


_register()
