"""python -m codesign_bench.figures: everything is made from whatever there is, and says what is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import yaml
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.figure import Figure
from PIL import Image

from codesign_bench.analysis import looks, statistics, style
from codesign_bench.analysis.collect import Collection, collect
from codesign_bench.analysis.figures import comparison, designs, returns
from codesign_bench.analysis.figures.aggregate import aggregate
from codesign_bench.analysis.report import data
from codesign_bench.commands import figures as command
from codesign_bench.configuration import load_config
from codesign_bench.errors import ConfigError, StorageError
from codesign_bench.paths import options_of
from tests.analysis.study import write_run
from tests.reference.specification import TASKS

NAMES = ("comparison", "ablation", "jsmlp", "random_agents", "joint_index", "overview", "final_returns", "pairs", "aggregate")
TABLES = (
    *("methods", "final_returns", "parts", "summary", "pairwise", "cost", "exploration", "symmetry"),
    *("hyperparameters_transform2act", "hyperparameters_baselines"),
)


def text_of(figure: Figure) -> str:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [axes.get_title(), *(text.get_text() for text in axes.texts)]
    return " ".join(" ".join(found).split())


def shipped() -> dict[str, looks.Look]:
    """Of all methods that ship."""
    names = [name for name in options_of("method") if name in looks.ORDER]
    return looks.looks({name: load_config("config", [f"method={name}"])["method"] for name in names})


def panel(figure: Figure, title: str) -> Axes:
    return next(axes for axes in figure.axes if axes.get_title() == title)


def stretches(axes: Axes) -> list[tuple[bool, list[float]]]:
    """Whether each line is dashed, and its values."""
    return sorted(
        (line.get_dash_capstyle() and line._dash_pattern[1] is not None, np.asarray(line.get_ydata()).tolist()) for line in axes.lines
    )


def bands(axes: Axes) -> list[Any]:
    """The bands with something in them."""
    fills = [item for item in axes.collections if isinstance(item, FillBetweenPolyCollection)]
    return [fill for fill in fills if any(len(path.vertices) for path in fill.get_paths())]


def drawn(collection: Collection, *methods: str, **options: Any) -> Figure:
    return comparison.draw(collection, methods or collection.methods, ["gap"], **options)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of four methods in two environments."""
    root = tmp_path_factory.mktemp("results")
    rng = np.random.default_rng(0)
    for env in ("gap", "locomotion3d"):
        for method in ("transform2act", "nge", "transform2act_no_jsmlp", "mine"):
            for seed in range(2):
                write_run(root, method, env, seed, returns=rng.normal(5, 1, 4).cumsum())
    return root


def test_everything_is_made_without_simulating(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for name in ("mj_step", "mj_step1", "mj_step2", "mj_forward"):
        monkeypatch.setattr(mujoco, name, lambda *_: pytest.fail("figures never simulate"))
    assert command.main([f"results={results}", "study=study", f"out={tmp_path}"]) == 0
    for name in NAMES:
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert "<svg" in (tmp_path / f"{name}.svg").read_text()
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 5  # something is drawn
    for name in TABLES:
        assert (tmp_path / f"{name}.md").read_text().startswith("### ")
        assert r"\begin{tabular}" in (tmp_path / f"{name}.tex").read_text()
    index = (tmp_path / "index.md").read_text()
    assert all(name in index for name in (*NAMES, *TABLES))
    assert [path.name for path in tmp_path.glob(".*")] == [".made"]
    assert "from 16 runs" in capsys.readouterr().out


def test_the_same_study_gives_the_same_bytes(results: Path, tmp_path: Path) -> None:
    collection = collect(results, "study")
    for folder in ("a", "b"):
        comparison.comparison(collection, tmp_path / folder, band="interval", envs=["gap"])
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name


def test_methods_that_ship_differ_without_their_colours() -> None:
    found = shipped()
    assert len({(one.marker, one.dashes) for one in found.values()}) == len({one.colour for one in found.values()}) == len(found) == 17
    assert len({data._dashes(one) for one in found.values()}) == len(found)


def test_a_method_without_a_finished_run_does_not_vanish_unsaid(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act")
    write_run(tmp_path, "nge", returns=[1.0])
    assert "Without NGE: no run that reached the end." in text_of(aggregate(collect(tmp_path, "study"), ["transform2act", "nge"]))


def test_strangers_join_the_comparison_with_a_look_of_their_own(results: Path, tmp_path: Path) -> None:
    command.main([f"results={results}", "study=study", f"out={tmp_path}", "only=[comparison]", "formats=[png]"])
    assert "| mine |" in (tmp_path / "comparison_returns.md").read_text()
    found = looks.looks({name: {} for name in ("transform2act", "mine", *(f"stranger{i}" for i in range(20)))})
    assert len({(one.colour, one.dashes) for one in found.values()}) == len(found)


def test_label_and_colour_come_from_the_configuration_and_are_never_shared() -> None:
    own = {"label": "My method", "colour": "#123456"}
    found = looks.looks({"transform2act": own, "mine": own, "other": {"label": 3, "colour": "red"}})
    assert (found["transform2act"].label, found["transform2act"].colour) == ("My method", "#123456")
    assert found["mine"].label == "mine", "a variant that was only renamed"
    assert found["other"].label == "other"
    assert len({look.colour for look in found.values()}) == 3


def test_a_method_on_another_track_has_its_colour_in_another_line() -> None:
    configs = {name: load_config("config", [f"method={name}"])["method"] for name in options_of("method") if name in looks.ORDER}
    found = looks.looks(configs | {f"{name} track=strong": config for name, config in configs.items()})
    assert list(found)[:4] == ["transform2act", "transform2act track=strong", "nge", "nge track=strong"]
    paper, strong = found["nge"], found["nge track=strong"]
    assert (strong.label, strong.colour, strong.marker) == ("NGE (strong)", paper.colour, paper.marker)
    assert strong.dashes != paper.dashes
    assert len({(look.colour, look.dashes) for look in found.values()}) == 2 * len(configs)
    assert len({data._dashes(look) for look in found.values()}) == 2 * len(configs)
    assert looks.looks({"mine track=strong": {}})["mine track=strong"].label == "mine (strong)"
    assert "transform2act_no_gnn track=strong" in looks.on_the_command_line(found)[0]


def test_figures_of_the_paper_hold_their_methods_on_every_track(tmp_path: Path) -> None:
    for track in ("paper", "strong"):
        for i, method in enumerate(("transform2act", "transform2act_no_gnn", "nge")):
            write_run(tmp_path / "results", method, seed=int(track == "strong"), track=track, returns=[1.0, 2.0, 3.0 + i, 4.0])
    command.main(
        [f"results={tmp_path / 'results'}", "study=study", f"out={tmp_path / 'out'}", "formats=png", "only=comparison,ablation,tables"]
    )
    ablation = (tmp_path / "out/ablation_returns.md").read_text()
    assert "w/o GNNs (strong)" in ablation
    assert "NGE" not in ablation
    assert "NGE (strong)" in (tmp_path / "out/comparison_returns.md").read_text()
    assert "nge track=strong" in (tmp_path / "out/methods.md").read_text()


def test_labels_lead_to_the_names_on_the_command_line() -> None:
    (sentence,) = looks.on_the_command_line(shipped())
    assert "w/o GNNs is transform2act_no_gnn, w/o control JSMLP is " in sentence
    assert "continuous" not in sentence, "its label holds its name"


def test_a_number_that_is_missing_in_between_is_a_dashed_stretch(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path, seed=1, returns=[3.0, np.nan, 5.0, 6.0])
    figure = drawn(collect(tmp_path, "study"))
    assert stretches(panel(figure, "Gap Crosser")) == [(False, [2.0]), (False, [4.0, 5.0]), (True, [2.0, 2.0, 4.0])]
    assert "With evaluations that are not a number: gap/transform2act/seed_1. Dashed where seeds are missing." in text_of(figure)


# ---- how far they came -----------------------------------------------------------------------------------------------


def test_the_distance_travelled_is_a_second_row(tmp_path: Path) -> None:
    for method, metres in (("transform2act", [0.0, 1.0, 2.0, 3.0]), ("nge", [0.5, 0.5, 0.5, 0.5])):
        write_run(tmp_path, method, more={"net_displacement": metres})
    collection = collect(tmp_path, "study")
    figure = drawn(collection, designs=False)
    upper, lower = figure.axes
    assert (upper.get_ylabel(), lower.get_ylabel()) == ("total reward", "distance (m)")
    assert stretches(lower) == [(False, [0.0, 1.0, 2.0, 3.0]), (False, [0.5] * 4)]
    assert "Distance: metres forward in an episode." in text_of(figure)
    assert "Not recorded" not in text_of(figure)
    assert len(drawn(collection, designs=False, distance=False).axes) == 1


def test_runs_that_did_not_record_the_distance_are_drawn_without(tmp_path: Path) -> None:
    def without(path: Path) -> None:
        path.write_text(path.read_text().replace("net_displacement", "something_else"))

    without(write_run(tmp_path, "nge") / "progress.csv")
    (axes,) = drawn(collect(tmp_path, "study"), designs=False).axes
    assert axes.get_ylabel() == "total reward"
    write_run(tmp_path, "transform2act")
    figure = drawn(collect(tmp_path, "study"), designs=False)
    assert [len(axes.lines) for axes in figure.axes] == [2, 1]
    assert "Not recorded in all runs of NGE." in text_of(figure)
    write_run(tmp_path, "nge", "swimmer", study="two")
    without(write_run(tmp_path, "nge", "gap", study="two") / "progress.csv")
    figure = comparison.draw(collect(tmp_path, "two"), ["nge"], ["gap", "swimmer"], designs=False)
    assert "not recorded" in text_of(figure)


# ---- bands and marks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("band", "fewest"), [("std", 2), ("interval", 3)])
def test_too_few_seeds_have_no_band(tmp_path: Path, band: str, fewest: int) -> None:
    for seed in range(fewest):
        assert not seed or not bands(panel(drawn(collect(tmp_path, "study"), band=band), "Gap Crosser"))
        write_run(tmp_path, seed=seed, returns=[4.0 - seed, 3.0, 2.0, 1.0 + seed])
    figure = drawn(collect(tmp_path, "study"), band=band)
    assert len(bands(panel(figure, "Gap Crosser"))) == 1
    assert ("95 % t interval" in text_of(figure)) == (band == "interval")


def test_a_curve_is_dashed_where_runs_are_missing_and_has_no_band_where_one_is_left(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path, seed=1, returns=[3.0, 4.0])
    figure = drawn(collect(tmp_path, "study"))
    axes = panel(figure, "Gap Crosser")
    assert stretches(axes) == [(False, [2.0, 3.0]), (True, [3.0, 3.0, 4.0])]
    assert max(path.vertices[:, 0].max() for band in bands(axes) for path in band.get_paths()) == 20_000
    assert "Unfinished: gap/transform2act/seed_1. Dashed where seeds are missing." in text_of(figure)


def test_two_evaluations_of_which_one_run_lacks_the_second(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[1.0, 2.0])
    write_run(tmp_path, seed=1, returns=[3.0])
    assert stretches(panel(drawn(collect(tmp_path, "study")), "Gap Crosser")) == [(False, [2.0]), (True, [2.0, 2.0])]


def test_less_than_the_protocol_is_on_the_face(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    collection = collect(tmp_path, "study")
    for figure in (drawn(collection), designs.process(collection, "transform2act")):
        assert "1 seed (6 in the full protocol), 40 k steps (50 M in the full protocol)" in text_of(figure)
    for seed in range(6):
        write_run(tmp_path, seed=seed, study="full", budget="paper", returns=[1.0, 2.0], every=25_000_000)
    assert "full protocol" not in text_of(drawn(collect(tmp_path, "full")))


def test_forced_mixtures_and_left_out_runs_are_on_the_face(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    write_run(tmp_path, seed=1)
    write_run(tmp_path, seed=2, budget="pilot", returns=[1.0])
    assert "Left out: gap/transform2act/seed_2." in text_of(drawn(collect(tmp_path, "study")))
    assert "Forced: unequal budget" in text_of(drawn(collect(tmp_path, "study", force=True)))


def test_published_values_are_marks_only_when_asked_for(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0)
    collection = collect(tmp_path, "study")
    plain, marked = (panel(drawn(collection, published=p), "Gap Crosser") for p in (False, True))
    assert len(marked.lines) == len(plain.lines) + 1
    assert marked.lines[-1].get_ydata() == [3500.0]
    assert marked.get_ylim()[1] > 3500


def test_one_method_and_one_environment(results: Path, tmp_path: Path) -> None:
    arguments = [f"results={results}", "study=study", f"out={tmp_path}", "method=transform2act_no_jsmlp", "env=gap", "formats=[png]"]
    assert command.main(arguments) == 0
    assert "w/o all JSMLPs" in (tmp_path / "final_returns.md").read_text()
    assert "Swimmer" not in (tmp_path / "final_returns.md").read_text()


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_figures_of_nothing_are_refused(results: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    write_run(tmp_path, "mine", study="broken")
    for file in tmp_path.rglob("progress.csv"):
        file.write_text("")
    out = f"out={tmp_path / 'out'}"
    for arguments, sentence in (
        ([f"results={tmp_path}", "study=empty"], "The study 'empty' has no runs that can be shown."),
        ([f"results={tmp_path}", "study=broken"], "The study 'broken' has no runs that can be shown ("),
        ([f"results={results}", "study=study", "method=ngee"], "method is 'ngee', nearest is nge; the study 'study' holds mine, nge, "),
        ([f"study={results / 'study'}", "env=gap,gpa"], "env is 'gpa', nearest is gap; the study 'study' holds gap, locomotion3d."),
    ):
        with pytest.raises(ConfigError, match=re.escape(sentence)):
            command.main([*arguments, out])
    assert not (tmp_path / "out").exists()


def test_what_it_did_not_make_is_not_written_over(results: Path, tmp_path: Path) -> None:
    arguments = [f"results={results}", "study=study", f"out={tmp_path}", "only=diagrams", "formats=png"]
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(ConfigError, match=r"which holds thesis.tex, not made by figures"):
        command.main(arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    (tmp_path / "thesis.tex").unlink()
    for _ in range(2):
        assert command.main(arguments) == 0
    (tmp_path / "overview.png").write_text("mine")
    with pytest.raises(ConfigError, match=r"overview.png was not made by this command, or was changed since"):
        command.main(arguments)
    assert (tmp_path / "overview.png").read_text() == "mine"


def test_figures_of_a_version_without_a_list(results: Path, tmp_path: Path) -> None:
    arguments = [f"results={results}", "study=study", f"out={tmp_path}", "only=diagrams", "formats=png"]
    assert command.main(arguments) == 0
    (tmp_path / ".made").unlink()
    assert command.main(arguments) == 0


def test_parts_for_which_a_study_has_nothing(results: Path, tmp_path: Path) -> None:
    arguments = [f"results={results}", "study=study", f"out={tmp_path / 'out'}", "only=continuous"]
    with pytest.raises(ConfigError, match="only holds 'continuous', for which the study 'study' has no runs; allowed are comparison, "):
        command.main(arguments)
    assert not (tmp_path / "out").exists()


def test_a_figure_shows_what_the_study_holds(results: Path, tmp_path: Path) -> None:
    found = collect(results, "study", envs=["locomotion3d"], methods=["nge", "mine"])
    out = tmp_path / "out"
    command.main([f"results={results}", "study=study", f"out={out}", "env=locomotion3d", "method=nge,mine", "formats=[png]"])
    assert {path.stem for path in out.glob("*.png")} == {
        *("comparison", "final_returns", "pairs", "aggregate", "random_agents", "joint_index", "overview")
    }
    assert [axes.get_title() for axes in returns.final_returns(found).axes] == ["3D Locomotion"]
    assert [text.get_text() for text in returns.final_returns(found).axes[0].get_yticklabels()] == ["NGE", "mine"]
    assert [axes.get_title() for axes in designs.random_agents(found).axes] == ["3D Locomotion"]


def test_final_returns_hold_every_seed_and_our_interval(tmp_path: Path) -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    for seed, value in enumerate(values):
        write_run(tmp_path, seed=seed, returns=[0.0, value])
    write_run(tmp_path, seed=6, returns=[99.0])
    (axes,) = returns.final_returns(collect(tmp_path, "study")).axes
    done, short = axes.collections[0].get_offsets(), axes.collections[1].get_offsets()
    assert sorted(np.asarray(done)[:, 0].tolist()) == values
    assert np.asarray(short)[:, 0].tolist() == [99.0]
    wanted = statistics.mean([values])
    drawn_at = [np.asarray(line.get_xdata(), dtype=float).tolist() for line in axes.lines if len(line.get_xdata())]
    assert [wanted.value] in drawn_at
    assert [wanted.low, wanted.high] in drawn_at


def test_pairs_are_the_probabilities_of_the_table_and_of_the_other_side(tmp_path: Path) -> None:
    for method, finals in (("transform2act", [1.0, 2.0]), ("nge", [0.0, 1.5]), ("mine", [5.0, 5.0])):
        for seed, value in enumerate(finals):
            write_run(tmp_path, method, seed=seed, returns=[0.0, value])
    (axes,) = returns.pairs(collect(tmp_path, "study")).axes
    texts = {tuple(round(v - 0.5) for v in text.get_position()): text.get_text() for text in axes.texts}
    assert texts == {(1, 0): ".75", (2, 0): "0", (0, 1): ".25", (2, 1): "0", (0, 2): "1", (1, 2): "1"}


def test_broken_designs_and_rows_do_not_stop_a_figure(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "results", seed=0, returns=[np.nan, 2.0, np.inf, 3.0], tail="5,5000")
    (folder / "designs" / "final.json").write_text("{")
    (folder / "designs" / "final_process.json").write_text('[{"format": 2}]')
    (write_run(tmp_path / "results", "transform2act_no_jsmlp", seed=0) / "designs" / "final.json").unlink()
    assert command.main([f"results={tmp_path / 'results'}", "study=study", f"out={tmp_path / 'out'}", "formats=[png]"]) == 0
    collection = collect(tmp_path / "results", "study")
    assert "no design on disk" in text_of(drawn(collection))
    assert "no design process on disk" in text_of(designs.process(collection, "transform2act"))


def test_an_environment_without_a_design_space_does_not_stop_a_figure(tmp_path: Path) -> None:
    file = write_run(tmp_path / "results") / "config.yaml"
    config = yaml.safe_load(file.read_text())
    config["env"]["design"] = None
    file.write_text(yaml.safe_dump(config))
    only = "only=[comparison,diagrams,final_returns]"
    assert command.main([f"results={tmp_path / 'results'}", "study=study", f"out={tmp_path / 'out'}", "formats=[png]", only]) == 0


def test_published_values_say_where_they_are_from(tmp_path: Path) -> None:
    write_run(tmp_path)
    write_run(tmp_path, "mine")
    collection = collect(tmp_path, "study")
    assert "Stars: read from the figure of baselines in Yuan et al. (ICLR 2022), ±5 %." in text_of(
        drawn(collection, "transform2act", published=True)
    )
    assert "Stars" not in text_of(drawn(collection, "mine", published=True)), "there are none of it"


def test_missing_methods_are_named(tmp_path: Path) -> None:
    write_run(tmp_path)
    for method in ("nge", "ess"):
        write_run(tmp_path, method, "swimmer")
    assert "No runs of NGE, ESS in Gap Crosser." in text_of(drawn(collect(tmp_path, "study"), "transform2act", "nge", "ess"))


def test_names_from_users_are_text(tmp_path: Path) -> None:
    for name in ("a_b", "$x^2$", "$\\frac", "<script>alert(1)<script>", "x|y`z`", "100%", "Ü" * 40, "\\input{x}"):
        write_run(tmp_path / "results", name, returns=[1.0, 2.0])
    out = tmp_path / "out"
    arguments = [f"results={tmp_path / 'results'}", "study=study", f"out={out}", "formats=[svg]", "only=[comparison]", "env=[gap]"]
    assert command.main(arguments) == 0
    assert "<script>" not in (out / "comparison.svg").read_text()
    latex = (out / "comparison_returns.tex").read_text()
    body = latex[latex.index(r"\midrule") : latex.index(r"\bottomrule")]
    assert r"\textbackslash{}input\{x\}" in body
    assert not re.search(r"(?<!\\)[$%#_^~]", body.replace(r"$\pm$", "").replace(r"$\dagger$", ""))
    assert "<script>" not in (out / "comparison_returns.md").read_text()


def test_refusals(tmp_path: Path) -> None:
    write_run(tmp_path, "mine")
    (tmp_path / "file").write_text("")
    base = [f"results={tmp_path}", "study=study"]
    for arguments, sentence in (
        ([], "study is missing"),
        ([f"results={tmp_path}", "study=nothing"], "There is no study 'nothing'"),
        ([*base, "only=[nothing]"], "only holds 'nothing'; allowed are comparison, "),
        ([*base, "band=minmax"], "band is 'minmax'; allowed are std, interval"),
        ([*base, "formats=[gif]"], "allowed are pdf, svg, png"),
        ([*base, "formats=[]"], "formats is empty"),
        ([*base, f"against={tmp_path}/x", f"out={tmp_path}/o", "only=[against]"], "There is no study 'x'"),
        ([*base, "nothing"], "is not understood"),
        ([*base, "only=[against]"], "only holds 'against', but there is no study to compare with"),
    ):
        with pytest.raises(ConfigError, match=re.escape(sentence)):
            command.main(arguments)
    with pytest.raises(StorageError, match="cannot be written"):
        command.main([*base, f"out={tmp_path / 'file'}", "only=[diagrams]"])


@pytest.mark.slow
def test_a_full_study(tmp_path: Path) -> None:
    """Six seeds of ten methods in four environments, a thousand evaluations each."""
    rng = np.random.default_rng(0)
    for env in TASKS:
        for method in looks.ORDER:
            for seed in range(6):
                write_run(tmp_path / "results", method, env, seed, budget="paper", returns=rng.normal(1, 1, 1000).cumsum(), every=50_000)
    assert command.main([f"results={tmp_path / 'results'}", "study=study", f"out={tmp_path / 'out'}"]) == 0
    assert "Less than" not in (tmp_path / "out" / "final_returns.md").read_text()
    assert all((tmp_path / "out" / f"{name}.{kind}").exists() for name in (*NAMES, "continuous") for kind in style.FORMATS)
