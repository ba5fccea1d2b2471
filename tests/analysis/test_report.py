"""The report as a file: whole, safe and honest about what is missing. What it does in a browser is in test_report_browser.py."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesign_bench.analysis import champions, gallery, tables
from codesign_bench.analysis.collect import collect
from codesign_bench.analysis.looks import Look
from codesign_bench.analysis.report import bodies, commands, data
from codesign_bench.analysis.report.data import standing_out
from codesign_bench.analysis.report.page import HERE, report
from codesign_bench.commands import report as command
from codesign_bench.design.stored import StoredDesign
from codesign_bench.errors import ConfigError
from codesign_bench.experiment.design_process import process_json
from codesign_bench.experiment.motion import Motion
from codesign_bench.experiment.reevaluation import Reevaluation
from codesign_bench.tasks import make_task
from tests.analysis.study import fresh_episodes, write_run

HOSTILE = '<img src=x onerror="document.title=1">\'&$-->'
GENEALOGY = (
    "generation,species,parent,born,mutation,fitness,bodies,episodes,steps,champion\r\n"
    "0,0,,0,random,1.5,3,2,100,1\r\n0,1,,0,random,nan,4,2,100,0\r\n1,0,,0,random,2.5,3,2,200,0\r\n1,2,0,1,add <b>,3.5,5,2,100,1\r\n"
)


def write_genealogy(folder: Path, text: str = GENEALOGY) -> None:
    (folder / "tables").mkdir()
    (folder / "tables" / "genealogy.csv").write_text(text, newline="")


def made(results: Path, *arguments: str, study: str = "study") -> str:
    out = results / "report.html"
    assert command.main([f"results={results}", f"study={study}", f"out={out}", *arguments]) == 0
    return out.read_text(encoding="utf-8")


class Page(HTMLParser):
    """Tags, visible text, and the embedded data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._raw: list[str] = []
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.feed(text)
        self.close()
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        self._raw.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._raw.append("/" + tag)

    def handle_data(self, text: str) -> None:
        inside = self._raw[-1] if self._raw else ""
        if inside == "script":
            self.scripts.append(text)
        elif inside == "style":
            self.styles.append(text)
        else:
            self.text.append(text)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods and a stranger with a hostile name, two environments, two seeds, species and a motion."""
    results = tmp_path_factory.mktemp("results")
    for method in ("transform2act", "nge", "we <b>love<b> robots"):
        for seed in (0, 1):
            folder = write_run(results, method, "gap", seed, returns=[1.0, 2.0, 3.0, 4.0 + seed])
            write_run(results, method, "swimmer", seed)
            if method == "nge":
                write_genealogy(folder)
    folder = results / "study" / "gap" / "transform2act" / "seed_1"
    design, space = (stored := StoredDesign.load(folder / "designs" / "final.json")).design, stored.space
    poses = np.random.default_rng(0).normal(size=(5, 2 + design.num_nodes))
    Motion(design, space, poses, 0.04, 12.5, True).save(folder)
    Reevaluation(fresh_episodes(7.25, 40_000, 100, 1234), fresh_episodes(8.5, 20_000, 100, 999)).save(folder)
    return results


@pytest.fixture(scope="module")
def page(full: Path) -> Page:
    return Page(made(full))


# ---- whole -------------------------------------------------------------------------------------------------------------


def test_it_holds_everything(page: Page) -> None:
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert {"leaderboard", "curves", "designs", "lineage", "ledger", "versions", "commands"} <= ids
    assert "Each of the 12 runs was charged exactly 40,000 environment steps." in page.words
    assert "Less than the full protocol: 2 seeds (6 in the full protocol), 40 k steps" in page.words
    assert "12 runs · 3 methods · 2 environments · 2 seeds each · budget 40 k steps" in page.words
    assert "mujoco 4.0.0" in page.words
    assert "codesign-bench method=nge env=gap seed=1 budget=smoke study=study" in page.words
    for column in (
        "Final return",
        "Mean [95 %]",
        "Distance (m)",
        "Mean over steps",
        "Fresh",
        "Retrained",
        "Designs tried",
        "Minutes",
        "New controller",
    ):
        assert column in page.text
    assert "7.25" in page.words
    assert "8.50" in page.words
    assert page.data["curves"]["gap"]["steps"] == [10000, 20000, 30000, 40000]
    centre, low, high = page.data["curves"]["gap"]["metrics"]["return_mean"]["nge"]["std"]
    assert centre == [1, 2, 3, 4.5]
    assert low[3] == pytest.approx(4.5 - np.sqrt(0.5), rel=1e-4)
    assert high[3] == pytest.approx(4.5 + np.sqrt(0.5), rel=1e-4)


def test_the_best_seed_comes_first(page: Page) -> None:
    runs = page.data["designs"]["gap"]["methods"]["transform2act"]
    assert [run["seed"] for run in runs] == [1, 0]
    assert runs[0]["final"] == 5.0
    assert runs[0]["motion"]["frames"] == 5
    assert runs[1]["motion"] is None


def test_each_run_has_a_command_of_its_own_and_the_sweep_is_shown_once(tmp_path: Path) -> None:
    sweep = ["method=nge,transform2act", "seed=0,1", "sampler.groups=2,3", "results=/x", "study=..."]
    for seed in (0, 1):
        file = write_run(tmp_path, seed=seed, sampler={"groups": 3}) / "manifest.json"
        manifest = {**json.loads(file.read_text()), "command": ["python", "-m", "codesign_bench", "-m", *sweep]}
        file.write_text(json.dumps(manifest))
    collection = collect(tmp_path, "study")
    own = "codesign-bench method=transform2act env=gap seed=1 budget=smoke study=study sampler.groups=3"
    assert commands.command_of(collection.runs[1]) == own
    (once,) = commands.sweeps(collection)
    assert once == f"codesign-bench -m {' '.join(sweep[:3])} study=study"
    assert own in Page(made(tmp_path)).words


def test_commands_of_variants_strangers_and_benchmarks(tmp_path: Path) -> None:
    file = write_run(tmp_path, "mine") / "manifest.json"
    typed = ["codesign-bench", "bench", "experiment=bench", "env=gap"]
    file.write_text(json.dumps({**json.loads(file.read_text()), "command": typed}))
    collection = collect(tmp_path, "study")
    (run,) = collection.runs
    own = "codesign-bench method=transform2act env=gap seed=0 budget=smoke study=study"
    assert commands.command_of(run) == f"{own} method.name=mine"
    assert commands.sweeps(collection) == ["codesign-bench bench experiment=bench env=gap study=study"]
    method = {**run.config["method"], "skeleton": {**run.config["method"]["skeleton"], "gnn": None}}
    changed = commands.command_of(replace(run, config={**run.config, "method": method}))
    assert sorted(changed.split()) == sorted(f"{own} method.name=mine method.skeleton.gnn=null".split())
    older = {key: value for key, value in run.config["method"].items() if key != "value"}  # before there was such a key
    assert commands.command_of(replace(run, config={**run.config, "method": older})) == f"{own} method.name=mine"
    stranger = replace(run, config={**run.config, "method": {"name": "mine", "plugin": "theirs"}})
    assert commands.command_of(stranger) == " ".join(typed)


def test_the_ledger_holds_what_was_charged(tmp_path: Path) -> None:
    write_run(tmp_path, returns=[1.0, 2.0, 3.0, float("nan")])
    table = data.ledger(collect(tmp_path, "study"))
    assert table.rows[0][:4] == ("gap/transform2act/seed_0", "done", "40,000", "40,000")
    assert table.notes[0] == "Each of the 1 runs was charged exactly 40,000 environment steps."


def test_short_runs_do_not_count(tmp_path: Path) -> None:
    for seed, (returns, value) in enumerate((([1.0, 2.0, 3.0, 4.0], 10.0), ([99.0], 90.0))):
        folder = write_run(tmp_path, seed=seed, returns=returns)
        Reevaluation(fresh_episodes(value, 10_000 * len(returns)), None).save(folder)
    collection = collect(tmp_path, "study")
    assert tables.summary(collection, "gap").rows == (("Transform2Act", "1 of 2", "4.00", "4.00", "0.00", "2.50", "15 k (2 of 2)", "10.0"),)


def test_the_best_method_comes_first(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", returns=[1.0, 2.0])
    write_run(tmp_path, "nge", returns=[1.0, 5.0])
    write_run(tmp_path, "ess", returns=[9.0])
    collection = collect(tmp_path, "study")
    assert [row[0] for row in tables.summary(collection, "gap").rows] == ["NGE", "Transform2Act", "ESS"]
    assert [row[1] for row in tables.summary(collection).rows] == ["Transform2Act", "NGE", "ESS"]


def test_across_environments_whoever_has_them_all_comes_first(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", returns=[4.0])
    write_run(tmp_path, "transform2act", "swimmer", returns=[2.0])
    write_run(tmp_path, "nge", "gap", returns=[8.0])
    table = tables.overall(collect(tmp_path, "study"))
    assert table.rows == (("Transform2Act", "0.75", "0.75", "2 of 2", "2"), ("NGE", "1.00", "1.00", "1 of 2", "1"))


def test_the_best_run_is_the_same_everywhere(tmp_path: Path) -> None:
    """Among the runs that got furthest: a short run's return is not a final one."""
    write_run(tmp_path, seed=0, returns=[99.0])
    write_run(tmp_path, seed=1, returns=[1.0, 2.0, 3.0, 4.0])
    write_run(tmp_path, seed=2, returns=[1.0, 2.0, 3.0, 5.0])
    collection = collect(tmp_path, "study")
    champion = champions.champion(collection, "gap", "transform2act")
    assert champion is not None
    assert champion[0].seed == 2
    assert gallery.chosen_runs(collection, ["best"])[0][1]["transform2act"].seed == 2
    assert [run["seed"] for run in bodies.designs(collection, [])["gap"]["methods"]["transform2act"]] == [2, 1, 0]


def test_it_loads_nothing_and_may_load_nothing(full: Path, page: Page) -> None:
    text = (full / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text)
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert attributes.get("src", "data:image/png;base64,").startswith("data:image/png;base64,")
        assert attributes.get("href", "#").startswith("#")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
    (policy,) = [a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    for content in (page.scripts[1], page.styles[0]):
        assert f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}" in policy
    assert "unsafe" not in policy


def test_the_same_study_gives_the_same_values(full: Path, page: Page) -> None:
    assert Page(made(full)).data == page.data


# ---- hostile names -------------------------------------------------------------------------------------------------------


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    method = HOSTILE.replace("/", "")
    folder = write_run(tmp_path, method, study="<script>alert(1)<script>")
    write_genealogy(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["versions"]["<i>x</i>"] = "</script><script>alert(2)</script>"
    manifest["command"] = ["python", "</code><script>alert(3)</script>"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "status.json").write_text(json.dumps({"status": "failed", "reason": "</li></ul><b>bold</b>"}))
    page = Page(made(tmp_path, study="'<script>alert(1)<script>'"))
    assert [tag for tag, _ in page.tags].count("script") == 2
    assert not {"b", "i"} & {tag for tag, _ in page.tags}
    assert all(set(attributes) == {"alt", "src"} for tag, attributes in page.tags if tag == "img")
    assert method in page.words
    assert "</li></ul><b>bold</b>" in page.words
    assert [m["name"] for m in page.data["methods"]] == [method]
    assert page.data["lineages"][0]["mutation"][-1] == "add <b>"


# ---- bad input -----------------------------------------------------------------------------------------------------------


def test_an_empty_study(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    with pytest.raises(ConfigError, match="The study 'study' has no runs"):
        made(tmp_path)


def test_one_seed_has_no_band(tmp_path: Path) -> None:
    write_run(tmp_path, "nge")
    page = Page(made(tmp_path))
    for _, low, high in (page.data["curves"]["gap"]["metrics"]["return_mean"]["nge"][kind] for kind in ("std", "interval")):
        assert set(low) == set(high) == {None}
    assert "Fewer than three seeds have no interval." in page.words
    assert "ashed" not in page.words, "dashes are the methods' patterns here"
    assert "± 0" not in page.words


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    write_run(tmp_path, "transform2act", "gap", 0)
    write_run(tmp_path, "transform2act", "gap", 1, returns=[1.0, float("nan"), 3.0, 4.0])
    write_run(tmp_path, "transform2act", "swimmer", 0, returns=[1.0, 2.0], status="stopped", tail="3,30000,3.")
    write_run(tmp_path, "nge", "gap", 0, designs=False)
    write_run(tmp_path, "nge", "gap", 2, budget="pilot")
    broken = write_run(tmp_path, "ess", "gap", 0)
    (broken / "designs" / "final.json").write_text("<mujoco>")
    (broken / "motion.json").write_text("{")
    (broken / "reevaluation.json").write_text("{")
    write_genealogy(broken, "species\r\n1\r\n")
    words = Page(made(tmp_path)).words
    for part in (
        "Swimmer has no runs of nge, ess.",
        "Gap Crosser, nge: no run with seed 1.",
        "gap/transform2act/seed_1: 1 evaluation(s) are not a number",
        "swimmer/transform2act/seed_0: 1 row(s) of progress.csv left out",
        "swimmer/transform2act/seed_0: 20000 of 40000 steps",
        "No body to show: gap/nge/seed_0/designs/final.json is missing",
        "Left out: gap/nge/seed_2: unequal budget",
        "No body to show: gap/ess/seed_0/designs/final.json cannot be read as JSON",
        "gap/ess/seed_0/reevaluation.json does not hold a re-evaluation",
        "Species are not shown: gap/ess/seed_0/tables/genealogy.csv lacks the columns generation",
        "1 of 5 runs have not recorded its end yet",
    ):
        assert part in words, part
    assert str(tmp_path) not in words.split("Commands")[0], "no places of this machine"


def test_a_motion_of_another_design_is_not_shown(full: Path, tmp_path: Path) -> None:
    results = Path(shutil.copytree(full, tmp_path / "copy"))
    folder = results / "study" / "gap"
    shutil.copy(folder / "nge" / "seed_0" / "designs" / "final.json", folder / "transform2act" / "seed_1" / "designs" / "final.json")
    page = Page(made(results))
    assert "its motion is not shown, because the design has changed" in page.words
    assert page.data["designs"]["gap"]["methods"]["transform2act"][0]["motion"] is None


def test_numbers_of_an_agent_that_has_gone_on_are_left_out(full: Path, tmp_path: Path) -> None:
    results = Path(shutil.copytree(full, tmp_path / "copy"))
    file = results / "study" / "gap" / "transform2act" / "seed_1" / "reevaluation.json"
    value = json.loads(file.read_text())
    value["agent"]["steps"] = 20_000
    file.write_text(json.dumps(value))
    page = Page(made(results))
    assert "gap/transform2act/seed_1 was re-evaluated at 20000 steps and has gone on since" in page.words
    assert "Fresh" not in page.text


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["study=nothing"], "There is no study 'nothing'"),
        (["study=study", "out=report.pdf"], "out is 'report.pdf'; allowed are names that end in .html."),
        (["study=study", "force=maybe"], "force is 'maybe'"),
        (["study=study", "colour=red"], "There is no key 'colour'"),
    ],
)
def test_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], part: str) -> None:
    (tmp_path / "results" / "study").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=re.escape(part)):
        command.main(arguments)
    assert not list(tmp_path.glob("*.*"))


def test_videos_are_embedded_as_far_as_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path)
    monkeypatch.setattr(data, "VIDEO_BYTES", 10)
    (tmp_path / "study" / "a.mp4").write_bytes(b"12345")
    (tmp_path / "study" / "b.mp4").write_bytes(b"123456")
    page = Page(made(tmp_path))
    assert page.data["videos"] == [{"name": "a", "data": base64.b64encode(b"12345").decode()}]
    assert "The video b.mp4 (0.0 MB) is not embedded" in page.words


# ---- parts ---------------------------------------------------------------------------------------------------------------


def test_a_motion_arrives_within_half_a_thousandth(full: Path) -> None:
    motion = Motion.load(full / "study" / "gap" / "transform2act" / "seed_1")
    assert motion is not None
    value = bodies.motion_value(motion)
    differences = np.array(value["differences"]).reshape(value["frames"], -1)
    np.testing.assert_allclose(np.cumsum(differences, axis=0) / 1000, motion.poses, atol=0.5001e-3)


def test_species_are_read_as_far_as_they_are_written(tmp_path: Path) -> None:
    folder = write_run(tmp_path, "nge")
    write_genealogy(folder, GENEALOGY + "2,3,0,1,add,4.")
    (found,) = bodies.lineages(collect(tmp_path, "study"), [])
    assert found["species"] == [0, 1, 0, 2]
    assert found["parent"] == [-1, -1, -1, 0]
    assert found["fitness"] == [1.5, None, 2.5, 3.5]
    assert found["mutation"][-1] == "add <b>"


@pytest.mark.parametrize("row", ["2,x,0,1,add,4.5,5,2,100,1", "2,3,inf,1,add,4.5,5,2,100,1", "2,3,0,1,add"])
def test_species_that_cannot_be_read_are_named(tmp_path: Path, row: str) -> None:
    folder = write_run(tmp_path, "nge")
    write_genealogy(folder, f"{GENEALOGY}{row}\r\n")
    missing: list[str] = []
    assert bodies.lineages(collect(tmp_path, "study"), missing) == []
    assert "Species are not shown: gap/nge/seed_0/tables/genealogy.csv cannot be read as a table" in missing[0]


def test_what_does_not_fit_is_named(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "MOTION_BYTES", 10)
    monkeypatch.setattr(bodies, "LINEAGE_ROWS", 2)
    page = Page(made(full))
    assert "its motion is not shown; the report stays below 20 MB" in page.words
    assert "its species are not shown; the report stays below 20 MB" in page.words
    assert page.data["lineages"] == []


@pytest.mark.parametrize("background", [data.LIGHT, data.DARK])
def test_colours_stand_out(background: str) -> None:
    def luminance(colour: str) -> float:
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in ("#000000", "#ffffff", "#56B4E9", "#332288", "#E69F00", "#777777"):
        a, b = sorted((luminance(standing_out(colour, background)), luminance(background)))
        assert (b + 0.05) / (a + 0.05) >= 2.95
    assert data._colours(Look("Expert design", "#000000", "h")) == {"light": "#000000", "dark": "#ffffff"}
    assert standing_out("#0072B2", data.LIGHT) == "#0072b2", "a colour that stands out already stays"


def test_numbers_and_names_in_cells(tmp_path: Path) -> None:
    write_run(tmp_path, seed=0, returns=[-1234.5])
    write_run(tmp_path, seed=1, returns=[-1234.5])
    write_run(tmp_path, seed=2, returns=[-1234.5])
    write_run(tmp_path, "<b>", seed=0, returns=[-3.25])
    text = made(tmp_path)
    assert '<td class="number">\u22121,234 <span class="faint">± 0</span></td>' in text
    assert '<td class="number">\u22121,234 <span class="faint">[\u22121,234, \u22121,234]</span></td>' in text
    assert '<td class="number">\u22123.25 </td>' in text
    assert '<span class="swatch m0"></span>Transform2Act <span class="faint code-name">transform2act</span></th>' in text
    assert '<span class="swatch m1"></span>&lt;b&gt;</th>' in text


SORT = """
const source = require("fs").readFileSync(0, "utf8");
const text = source.slice(source.indexOf("function sortKey"), source.indexOf("// ---- copying"));
const sortKey = new Function(`${text}return sortKey;`)();
console.log(JSON.stringify(JSON.parse(process.argv[1]).map((text) => String(sortKey(text)))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_columns_are_sorted_by_the_numbers_in_them() -> None:
    expected = {
        **{"1,234 ± 12": "1234", "\u22120.33 [\u22123.05, 2.39]": "-0.33", "4": "4", "2 of 3": "2", "40 k": "40000", "1.5 M": "1500000"},
        **{"≤ 10 k (2 of 2)": "10000", "15.2 k (2 of 2)": "15200", "never (0 of 2)": "Infinity", "> 40 k (1 of 2)": "Infinity"},
        **{
            "\u2212": "-Infinity",
            "90.0 † (10 k)": "90",
            "gap/nge/seed_0": "gap/nge/seed_0",
            "4.0.0": "4.0.0",
            "2D Locomotion": "2D Locomotion",
        },
    }
    script = (HERE / "page.js").read_text()
    command = ["node", "-e", SORT, json.dumps(list(expected))]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=True)
    assert dict(zip(expected, json.loads(done.stdout), strict=True)) == expected


def test_a_sentence_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path)
    monkeypatch.setattr(data, "gaps", lambda collection: ["Said twice.", "Said twice."])
    assert report(collect(tmp_path, "study"), tmp_path, "").count("Said twice.") == 1


def test_the_data_can_not_end_its_element(page: Page, full: Path) -> None:
    text = made(full)
    block: Any = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert not set("<>&") & set(block.group(1))
    assert json.loads(block.group(1)) == page.data


def test_how_an_agent_designs_itself_comes_before_its_final_design(full: Path, tmp_path: Path) -> None:
    results = Path(shutil.copytree(full, tmp_path / "copy"))
    folder = results / "study" / "gap" / "transform2act" / "seed_1" / "designs"
    task = make_task("gap")
    final = StoredDesign.load(folder / "final.json").design
    (folder / "at_000010000.json").write_text(StoredDesign(task.initial_design, task.space).to_json())
    (folder / "final_process.json").write_text(process_json((task.initial_design, final), task))
    page = Page(made(results))
    titles = [stage["title"] for stage in page.data["designs"]["gap"]["methods"]["transform2act"][0]["stages"]]
    assert titles == ["at 10,000 steps", "how it designs itself: initial skeleton", "final design"]
    (folder / "final_process.json").write_text("[")
    assert len(Page(made(results)).data["designs"]["gap"]["methods"]["transform2act"][0]["stages"]) == 2
