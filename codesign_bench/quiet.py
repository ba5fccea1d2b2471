"""MuJoCo would write every warning of a diverging design to the terminal and to a file in the current folder; warnings are
read from `data.warning` instead and counted."""

import mujoco


def be_quiet() -> None:
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(lambda message: None)
