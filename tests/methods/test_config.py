"""The configuration is the paper's table of hyperparameters (appendix), ablations are small changes to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError
from codesign_bench.paths import options_of
from codesign_bench.structured import build
from methods.transform2act.method import Transform2ActConfig
from tests.reference.specification import TASKS


def config_of(*overrides: str) -> tuple[Transform2ActConfig, dict[str, Any]]:
    config = load_config("config", list(overrides))
    method = {key: value for key, value in config["method"].items() if key not in ("name", "plugin", "label", "colour")}
    return build(Transform2ActConfig, method, "method"), config


def test_hyperparameters_of_the_paper() -> None:
    method, config = config_of()
    assert config["method"]["name"] == "transform2act"
    assert config["env"]["name"] == "locomotion2d"
    assert method.start == "initial"
    assert (method.skeleton.steps, method.attribute.steps) == (5, 1)
    for part in (method.skeleton, method.attribute, method.execution):
        assert part.gnn == (64, 64, 64)
        assert part.mlp == (128, 128)
        assert part.head == "jsmlp"
    assert np.exp(2 * method.attribute.log_std) == pytest.approx(0.01, rel=0.01)
    assert np.exp(2 * method.execution.log_std) == 1.0
    assert method.value.gnn == (64, 64, 64)
    assert method.value.mlp == (512, 256)
    assert method.jsmlp.init == "published"
    ppo = method.ppo
    assert (ppo.policy_lr, ppo.value_lr) == (5e-5, 3e-4)
    assert (ppo.clip, ppo.minibatch, ppo.passes, ppo.gae_lambda) == (0.2, 2048, 10, 0.95)
    assert ppo.policy_gradient_clip == 40.0
    assert config["budget"]["batch"] == 50_000
    assert config["budget"]["steps"] == 50_000_000 == 1000 * config["budget"]["batch"]
    assert config["budget"]["evaluate_every"] == 50_000
    assert config["evaluation"]["episodes"] == 10
    assert config["sampler"]["groups"] == 2


@pytest.mark.parametrize("name", TASKS)
def test_discount(name: str) -> None:
    assert config_of(f"env={name}")[0].ppo.gamma == (0.999 if name == "gap" else 0.995)


LEADER = {"control_steps": 6, "damping": 5.0, "iterations": 20, "tolerance": 1e-3, "limit": 1.0}
"""As published (Stackelberg PPO)."""


def test_ablations_change_what_they_name_and_nothing_else() -> None:
    full, _ = config_of()
    differences: dict[str, dict[str, Any]] = {
        "transform2act_no_gnn": {"skeleton.gnn": None, "attribute.gnn": None, "execution.gnn": None},
        "transform2act_no_control_jsmlp": {"execution.head": "linear"},
        "transform2act_no_jsmlp": {"skeleton.head": "linear", "attribute.head": "linear", "execution.head": "linear"},
        "transform2act_attributes": {"start": "expert", "skeleton.steps": 0},
        "transform2act_credit": {"ppo.credit": "stages"},
        "transform2act_stackelberg": {"ppo.credit": "stages", **{f"ppo.leader.{key}": value for key, value in LEADER.items()}},
    }
    assert {name for name in options_of("method") if name.startswith("transform2act")} == {"transform2act", *differences}
    for name, expected in differences.items():
        method, config = config_of(f"method={name}")
        assert config["method"]["name"] == name
        assert config["method"]["plugin"] == "transform2act"
        one, other = flat(full), flat(method)
        assert {key: other[key] for key in other if other[key] != one.get(key)} == expected


def flat(value: Any, where: str = "") -> dict[str, Any]:
    if not hasattr(value, "__dataclass_fields__"):
        return {where: value}
    return {key: v for name in value.__dataclass_fields__ for key, v in flat(getattr(value, name), f"{where}.{name}".strip(".")).items()}


@pytest.mark.parametrize("override", ["method.ppo.minibatch=0", "method.ppo.clip=-1", "method.ppo.gamma=1.5", "method.execution.head=tree"])
def test_bad_values_are_refused_in_a_sentence(override: str) -> None:
    key = override.split("=")[0].split(".")[-1]
    with pytest.raises(ConfigError, match=rf"{key} is .*allowed"):
        config_of(override)
