"""Files of a run folder with a value, a cell or some bytes changed at random: nothing but sentences, and the good runs are shown."""

from __future__ import annotations

import copy
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codesign_bench.errors import CodesignError
from codesign_bench.experiment import checkpoint
from tests.hostile.folders import FILES, NAME, harmless, light, limited, look, study, tree

SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}
FEW, MANY = 15, 400
"""Examples for each file: in `make test`, and in `make test-full`."""

NASTY = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 10**17, 10**40, -(10**17)]),
    st.floats(),
    st.text(max_size=30),
    st.sampled_from([NAME, "", "x" * 5000, "1e400", "nan", "../..", "${seed}", "0x10", "1_000", "\uff12"]),
    st.sampled_from([[], {}, [[]], {"": ""}, [None] * 50, [[[[0]]]], {"a": {"b": {"c": []}}}]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=5), part),
    ),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, dict[str, bytes]]]:
    """The study, the stranger's run in it, and its files as they are."""
    root = tmp_path_factory.mktemp("fuzz")
    victim = study(root / "results")
    return root, victim, {name: (victim / name).read_bytes() for name in FILES}


# ---- changes ---------------------------------------------------------------------------------------------------------


def places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all parts of a plain value."""
    yield here
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*here, key))


def changed(value: Any, path: tuple[Any, ...], how: str, new: Any) -> Any:
    if not path:
        return new
    value = copy.deepcopy(value)
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    if how == "replaced":
        parent[path[-1]] = new
    elif how == "removed":
        del parent[path[-1]]
    elif isinstance(parent, dict):
        parent[str(new)] = parent[path[-1]]
    else:
        parent.insert(path[-1], new)
    return value


@st.composite
def with_other_values(draw: st.DrawFn, content: bytes, name: str) -> bytes:
    """One to three parts of a JSON or YAML file are replaced, removed or doubled; a cell of a table likewise."""
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
        for _ in range(draw(st.integers(1, 3))):
            row = draw(st.integers(0, len(rows) - 1))
            cell = draw(st.integers(0, len(rows[row]) - 1)) if rows[row] else 0
            new = draw(NASTY)
            rows[row][cell : cell + 1] = draw(st.sampled_from([[str(new)], [], [str(new), "1"]]))
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        return text.getvalue().encode("utf-8", "surrogatepass")
    value = yaml.safe_load(content) if name.endswith(".yaml") else json.loads(content)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(places(value))))
        value = changed(value, path, draw(st.sampled_from(["replaced", "removed", "doubled"])), draw(NASTY))
    if name.endswith(".yaml") and draw(st.booleans()):
        return yaml.safe_dump(value, sort_keys=False, allow_unicode=True).encode("utf-8", "surrogatepass")
    return json.dumps(value).encode()  # which is YAML, too


@st.composite
def with_other_bytes(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut off, cut out, put in, flipped."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        content = draw(
            st.sampled_from([content[:start], content[:start] + content[end:], content[:end] + content[start:]])
            | st.binary(max_size=8).map(lambda new, c=content, a=start, b=end: c[:a] + new + c[b:])
        )
    return content


# ---- without commands ------------------------------------------------------------------------------------------------


def looked_at(place: tuple[Path, Path, dict[str, bytes]], name: str, content: bytes) -> None:
    root, victim, files = place
    try:
        (victim / name).write_bytes(content)
        before = tree(root / "results")
        with limited(name):
            look(root / "results", victim, repr(content[:2000]))
        assert tree(root / "results") == before
    finally:
        (victim / name).write_bytes(files[name])


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_other_values(place: tuple[Path, Path, dict[str, bytes]], name: str, examples: int) -> None:
    @settings(max_examples=examples, **SETTINGS)
    @given(with_other_values(place[2][name], name))
    def check(content: bytes) -> None:
        looked_at(place, name, content)

    check()


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FILES)
def test_other_bytes(place: tuple[Path, Path, dict[str, bytes]], name: str, examples: int) -> None:
    @settings(max_examples=examples, **SETTINGS)
    @given(with_other_bytes(place[2][name]))
    def check(content: bytes) -> None:
        looked_at(place, name, content)

    check()


# ---- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_commands(place: tuple[Path, Path, dict[str, bytes]], tmp_path_factory: pytest.TempPathFactory, capsys: Any, name: str) -> None:
    root, victim, files = place

    @settings(max_examples=20, **SETTINGS)
    @given(with_other_values(files[name], name))
    def check(content: bytes) -> None:
        out = tmp_path_factory.mktemp("out") / "out"
        out.mkdir()
        try:
            (victim / name).write_bytes(content)
            harmless(root / "results", victim, out, light, capsys)
        finally:
            (victim / name).write_bytes(files[name])

    check()


# ---- checkpoints -----------------------------------------------------------------------------------------------------

STATE = {"method": {"weights": [1.0, 2], "text": "ä"}, "ledger": {"charged": 10}}


@pytest.mark.parametrize("examples", [60, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("signed", [False, True], ids=["as it is", "with a checksum that fits"])
def test_checkpoints(tmp_path: Path, signed: bool, examples: int) -> None:
    """Whatever the bytes are: the state that was saved, or a sentence. With a fitting checksum, torch itself has to refuse."""
    checkpoint.save(tmp_path, 10, STATE, "hash")
    path = tmp_path / "000000000010.ckpt"
    whole = path.read_bytes()
    start = len(checkpoint.MAGIC) + 65

    @settings(max_examples=examples, **SETTINGS)
    @given(with_other_bytes(whole[start:] if signed else whole))
    def check(content: bytes) -> None:
        path.write_bytes(checkpoint.MAGIC + hashlib_of(content) + b"\n" + content if signed else content)
        with limited("load_latest"):
            try:
                state, _ = checkpoint.load_latest(tmp_path, "hash")
            except CodesignError as error:
                assert "\n" not in str(error)  # noqa: PT017
                return
        assert signed or state == STATE

    check()


def hashlib_of(content: bytes) -> bytes:
    import hashlib

    return hashlib.sha256(content).hexdigest().encode()
