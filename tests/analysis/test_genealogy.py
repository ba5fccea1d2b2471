"""Genealogies: reading what a run wrote, descent, lanes, and the picture."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from codesign_bench.analysis.genealogy import draw_genealogy, lanes, read_genealogy
from codesign_bench.commands import plot as command
from codesign_bench.errors import ConfigError
from codesign_bench.experiment import runner
from codesign_bench.experiment.run_folder import RunFolder
from codesign_bench.tasks import make_task
from methods.evolution.random_design import random_design
from tests.methods.population import small

TASK = make_task("swimmer")
#          species: (parent, born, generations lived)
GENEALOGY = ("generation", "species", "parent", "born", "mutation", "fitness", "bodies", "episodes", "steps", "champion")
SPECIES = ("species", "parent", "born", "mutation", "bodies", "design")
LIVES = {0: (None, 0, 4), 1: (None, 0, 1), 2: (None, 0, 2), 3: (0, 1, 3), 4: (3, 2, 2), 5: (0, 3, 1), 6: (3, 3, 1)}
FITNESS = {(4, 3): 9.0, (0, 0): 5.0, (2, 1): 8.0, (3, 2): 7.0, (1, 0): -np.inf}


def write_run(folder: Path) -> Path:
    """A run of four generations, written by hand."""
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(small("nge")))
    designs = {number: random_design(TASK, number % 4, np.random.default_rng(number)) for number in LIVES}
    rows = []
    for generation in range(4):
        now = {n: FITNESS.get((n, generation), 1.0) for n, (_, born, lived) in LIVES.items() if born <= generation < born + lived}
        best = max(now, key=lambda n: now[n])
        for n, fitness in now.items():
            parent, born, _ = LIVES[n]
            mutation = "random" if parent is None else "perturb"
            entry = (generation, n, parent, born, mutation, fitness, designs[n].num_nodes, 3, 10, int(n == best))
            rows.append(dict(zip(GENEALOGY, entry, strict=True)))
    write(folder / "tables" / "genealogy.csv", GENEALOGY, rows)
    species = [
        dict(zip(SPECIES, (n, LIVES[n][0], LIVES[n][1], "", d.num_nodes, json.dumps(d.to_dict())), strict=True)) for n, d in designs.items()
    ]
    write(folder / "tables" / "species.csv", SPECIES, species)
    return folder


def write(path: Path, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_bytes().decode().replace("\r\n", "\n")
    assert old in text
    path.write_text(text.replace(old, new))


def test_descent(tmp_path: Path) -> None:
    genealogy = read_genealogy(write_run(tmp_path))
    assert genealogy.champion == 4
    assert genealogy.lineage(4) == [0, 3, 4]
    assert genealogy.lineage(2) == [2]
    assert genealogy.parents[6] == 3
    assert genealogy.parents[0] is None
    assert genealogy.designs[3] == random_design(TASK, 3, np.random.default_rng(3))


def test_lines_of_descent_do_not_cross_lives(tmp_path: Path) -> None:
    lane = lanes(read_genealogy(write_run(tmp_path)))
    assert sorted(lane.values()) == list(range(len(LIVES)))
    for child, (parent, born, _) in LIVES.items():
        if parent is not None:
            assert lane[child] > lane[parent]
            between = [n for n in LIVES if lane[parent] < lane[n] < lane[child]]
            assert all(LIVES[n][1] > born for n in between)  # whoever lives between them was not born yet


def test_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    out = tmp_path / "pictures" / "tree.png"
    assert command.main([f"run={write_run(tmp_path / 'run')}", f"out={out}"]) == 0
    assert "7 species; the champion, species 4, descends from 0, 3" in capsys.readouterr().out
    pixels = np.asarray(Image.open(out).convert("RGB")).astype(int)
    assert pixels.shape == (1628, 1848, 3)
    red = np.abs(pixels - [200, 16, 46]).sum(axis=2) < 30
    assert red.sum() > 1000  # the champion's lineage
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 500  # fitness as colour, robots


def test_the_lineage_is_drawn_from_birth_to_birth(tmp_path: Path) -> None:
    genealogy = read_genealogy(write_run(tmp_path))
    figure = draw_genealogy(genealogy, TASK, "a run")
    lane = lanes(genealogy)
    (line,) = [line for axes in figure.axes for line in axes.lines if line.get_drawstyle() == "steps-post"]
    assert list(line.get_xdata()) == [-0.5, 0.5, 1.5, 3.5]
    assert list(line.get_ydata()) == [lane[0], lane[3], lane[4], lane[4]]
    titles = [axes.get_title() for axes in figure.axes]
    assert sum("champion, species 4" in title for title in titles) == 1
    assert any(title.startswith("species 0\nrandom, generation 0") for title in titles)


def test_a_run_that_was_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a population writes is what this reads."""
    config = small("nge", "method.elimination=0.5", results=tmp_path)
    assert runner.run(config, []) == "done"
    folder = RunFolder.of(config).path
    genealogy = read_genealogy(folder)
    assert sorted(genealogy.designs) == list(range(8))  # four, and two children in each of two generations
    assert genealogy.history.groupby("generation").size().tolist() == [4, 4, 4]
    bodies = genealogy.history.groupby("species")["bodies"].first()
    assert {number: design.num_nodes for number, design in genealogy.designs.items()} == bodies.to_dict()
    for number in genealogy.designs:
        *ancestors, last = genealogy.lineage(number)
        assert last == number
        assert bool(ancestors) == (number >= 4)
    out = tmp_path / "tree.png"
    assert command.main([f"run={folder}", f"out={out}"]) == 0
    assert f"8 species; the champion, species {genealogy.champion}," in capsys.readouterr().out
    assert out.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda run: (run / "tables" / "genealogy.csv").unlink(), "has no table to plot; genealogy and design_distribution are plotted"),
        (lambda run: write(run / "tables" / "genealogy.csv", GENEALOGY, []), "has not finished a generation yet"),
        (lambda run: (run / "tables" / "genealogy.csv").write_text(""), "cannot be read as a table"),
        (lambda run: (run / "tables" / "genealogy.csv").write_text("a,b\n1,2\n"), "lacks the columns generation"),
        (lambda run: edit(run / "tables" / "genealogy.csv", "\n1,0,,", "\nx,0,,"), "cannot be read as a table"),
        (lambda run: edit(run / "tables" / "genealogy.csv", "\n3,4,3,", "\n3,4,4,"), "older than its parent"),
        (lambda run: write(run / "tables" / "species.csv", SPECIES, []), "do not belong together"),
        (lambda run: (run / "tables" / "species.csv").write_text("species,design\n0,{}\n"), "species.csv cannot be read"),
        (lambda run: (run / "config.yaml").unlink(), "config.yaml"),
    ],
)
def test_damage_is_named_in_a_sentence(damage: Any, sentence: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    damage(run)
    with pytest.raises(ConfigError) as error:
        command.main([f"run={run}", f"out={tmp_path / 'tree.png'}"])
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"out is 'tree.gif'; allowed are names that end in .png"):
        command.main([f"run={tmp_path}", "out=tree.gif"])
