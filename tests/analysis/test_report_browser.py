"""The report in a real browser: nothing on the console, every control does what it says, and the bodies stand where MuJoCo puts them."""

from __future__ import annotations

import base64
import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from codesign_bench.analysis.report.bodies import robot_value
from codesign_bench.commands import report as command
from codesign_bench.design.mjcf import to_mjcf
from codesign_bench.design.stored import StoredDesign
from codesign_bench.experiment.motion import Motion
from codesign_bench.paths import env_config
from codesign_bench.simulation.rendering import save_video
from codesign_bench.simulation.showing import random_design
from codesign_bench.tasks import make_task
from tests.analysis.study import write_run
from tests.analysis.test_report import write_genealogy
from tests.reference.specification import TASKS

CHROMIUM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
HOSTILE = '<img src=x onerror="document.title=1">\'&'

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian: apt-get install chromium)")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install '.[dev]')")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four methods, one of them hostile, in two environments, with species, snapshots, a motion and a video."""
    results = tmp_path_factory.mktemp("results")
    for method in ("transform2act", "nge", "expert", HOSTILE):
        for seed in (0, 1):
            folder = write_run(results, method, "gap", seed, returns=[-1.0, 20.0, 300.0, 4000.0 + 100 * seed])
            write_run(results, method, "locomotion3d", seed, status="done", returns=[1.0, 2.0, 3.0 + seed, 4.0])
            write_genealogy(folder)
    folder = results / "study" / "gap" / "transform2act" / "seed_1"
    task = make_task("gap")
    early = task.initial_design
    (folder / "designs" / "at_000010000.json").write_text(StoredDesign(early, task.space).to_json())
    design = StoredDesign.load(folder / "designs" / "final.json").design
    poses = np.zeros((40, 2 + design.num_nodes))
    poses[:, 0], poses[:, 1], poses[:, 3] = np.linspace(0, 2, 40), 1.25, np.linspace(0, 1, 40)
    Motion(design, task.space, poses, 0.04, 4100.0, True).save(folder)
    save_video(results / "study" / "gallery.mp4", np.random.default_rng(0).integers(0, 255, (5, 32, 48, 3), dtype=np.uint8), 25, 5)
    out = results / "report.html"
    command.main([f"results={results}", "study=study", f"out={out}"])
    return out


class Opened:
    """A page and what its console said."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **options})
        self.page.set_default_timeout(10_000)
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self._note(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_selector("html[data-ready]")

    def _note(self, url: str) -> None:
        if not url.startswith(("file:", "blob:", "data:")):
            self.said.append(f"requested {url}")


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Any]:
    opened = Opened(browser, file)
    yield opened.page
    opened.page.wait_for_timeout(50)
    opened.page.close()
    assert opened.said == []


def drawn(page: Any, card: int = 0) -> Any:
    """The pixels of a card's view."""
    view = page.locator(".card canvas").nth(card)
    view.scroll_into_view_if_needed()
    page.wait_for_timeout(100)
    png = view.evaluate("c => c.toDataURL().split(',')[1]")
    return np.array(Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA"))


# ---- curves --------------------------------------------------------------------------------------------------------------


def test_methods_can_be_toggled(opened: Any) -> None:
    curves = opened.locator("figure[data-env=gap] .curve")
    assert curves.count() == 4
    opened.locator(".methods input[value=nge]").uncheck()
    assert curves.count() == 3
    assert opened.locator("figure[data-env=gap] .curve[data-method=nge]").count() == 0
    assert not opened.locator(".card[data-method=nge]").first.is_visible()
    opened.locator(".methods input[value=nge]").check()
    assert curves.count() == 4
    for box in opened.locator(".methods input").all():
        box.uncheck()
    assert opened.locator("figure[data-env=gap]").get_by_text("No values to show").is_visible()


def test_bands_scales_and_metrics(opened: Any) -> None:
    panel = opened.locator("figure[data-env=gap]")

    def path() -> Any:
        return panel.locator(".curve").first.get_attribute("d")

    seen = {path()}
    assert panel.locator(".band").count() == 4
    band = panel.locator(".band").first.get_attribute("d")
    opened.locator("input[name=band][value=interval]").check()
    assert panel.locator(".band").first.get_attribute("d") != band
    opened.locator("input[name=band][value=none]").check()
    assert panel.locator(".band").count() == 0
    opened.locator("input[name=y][value=log]").check()
    assert path() not in seen
    assert "at or below zero" in panel.inner_text()
    seen.add(path())
    opened.locator("input[name=x][value=log]").check()
    assert path() not in seen
    seen.add(path())
    opened.select_option("#metric", "episode_length")
    assert path() not in seen
    assert panel.get_by_text("episode length (steps)").count() == 1
    opened.get_by_label("single runs").check()
    assert panel.locator(".single").count() == 8


def test_hovering_tells_values(opened: Any) -> None:
    chart = opened.locator("figure[data-env=gap] svg.chart")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    opened.mouse.move(box["x"] + box["width"] - 15, box["y"] + 100)
    tip = opened.locator("figure[data-env=gap] .tip")
    assert "40,000 steps" in tip.inner_text()
    assert "NGE: 4,050 ± 70.7" in tip.inner_text()
    assert HOSTILE in tip.inner_text()
    opened.mouse.move(5, 5)
    assert not tip.is_visible()


def test_curves_by_keyboard(opened: Any) -> None:
    chart = opened.locator("figure[data-env=gap] svg.chart")
    chart.focus()
    for key, steps in (("Home", "10,000"), ("ArrowRight", "20,000"), ("End", "40,000"), ("ArrowLeft", "30,000")):
        opened.keyboard.press(key)
        assert f"{steps} steps" in opened.locator("#announcer").inner_text()
    opened.keyboard.press("Escape")
    assert not opened.locator("figure[data-env=gap] .tip").is_visible()


# ---- bodies --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env", list(TASKS))
def test_bodies_stand_where_mujoco_puts_them(opened: Any, env: str) -> None:
    rng = np.random.default_rng(3)
    for task in (make_task(env), make_task(env).with_expert()):
        design = random_design(task, rng)
        text = to_mjcf(design, task.space, task.scene)
        model = mujoco.MjModel.from_xml_string(text)
        state = mujoco.MjData(model)
        state.qpos[:] = model.qpos0 + rng.normal(0, 0.7, model.nq)
        mujoco.mj_normalizeQuat(model, state.qpos)
        mujoco.mj_forward(model, state)
        robot = json.dumps(robot_value(StoredDesign(design, task.space), env_config(env)))
        frames = opened.evaluate(f"Kinematics.frames({robot}, {state.qpos.tolist()})")
        np.testing.assert_allclose([frame["p"] for frame in frames], state.xpos[1:], atol=1e-4)
        np.testing.assert_allclose([frame["R"] for frame in frames], state.xmat[1:], atol=1e-5)
        shapes = np.array([s for s in opened.evaluate(f"Kinematics.capsules({robot}, {state.qpos.tolist()})") if s[7] >= 0])
        mine = model.geom_bodyid > 0
        np.testing.assert_allclose((shapes[:, :3] + shapes[:, 3:6]) / 2, state.geom_xpos[mine], atol=1e-4)
        np.testing.assert_allclose(shapes[:, 6], model.geom_size[mine, 0], atol=1e-5)


DRAW = """([shapes, azimuth, elevation]) => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [200, 200];
  const view = { azimuth, elevation, zoom: 1, size: 4, target: [0, 0, 0] };
  const clear = { grid: "transparent", water: "transparent", shadow: 0 };
  Drawing.draw(canvas, shapes, view, { ground: { kind: "none" } }, clear);
  return Array.from(canvas.getContext("2d").getImageData(0, 0, 200, 200).data);
}"""


def picture(page: Any, shapes: list[list[float]], azimuth: float, elevation: float) -> Any:
    return np.array(page.evaluate(DRAW, [shapes, azimuth, elevation])).reshape(200, 200, 4)


def test_a_capsule_covers_its_silhouette(opened: Any) -> None:
    """50 pixels to a metre; the outline of a capsule in parallel projection is the outline of its projected axis, grown by the radius."""
    radius, rng = 0.3, np.random.default_rng(0)
    for _ in range(6):
        a, b = rng.uniform(-1, 1, (2, 3))
        azimuth, elevation = float(rng.uniform(-180, 180)), float(rng.uniform(2, 89))
        found = picture(opened, [[*a, *b, radius, 0]], azimuth, elevation)[..., 3] > 127
        turn, rise = np.radians([azimuth, elevation])
        right = np.array([-np.sin(turn), np.cos(turn), 0])
        up = np.array([-np.sin(rise) * np.cos(turn), -np.sin(rise) * np.sin(turn), np.cos(rise)])
        ends = np.array([[100 + 50 * p @ right, 100 - 50 * p @ up] for p in (a, b)])
        y, x = np.mgrid[0:200, 0:200] + 0.25
        points, axis = np.stack([x, y], -1) - ends[0], ends[1] - ends[0]
        along = np.clip(points @ axis / (axis @ axis), 0, 1)
        distance = np.linalg.norm(points - along[..., None] * axis, axis=-1)
        assert found[distance < 50 * radius - 1.5].all()
        assert not found[distance > 50 * radius + 1.5].any()


def test_the_nearer_surface_hides_the_farther(opened: Any) -> None:
    """Seen along y: an orange ball behind a blue capsule that passes through it and comes out towards the viewer."""
    ball, rod = [0, 0, 0, 0, 0, 0, 0.5, 1], [0, 0, 0, 0, -1, 0, 0.2, 2]
    for shapes in ([ball, rod], [rod, ball]):
        front, back = picture(opened, shapes, -90, 2)[100, 100], picture(opened, shapes, 90, 2)[100, 100]
        assert front[2] > front[0], "blue in front"
        assert back[0] > back[2], "orange in front"


def test_views_turn_by_mouse_and_keys(opened: Any) -> None:
    pictures = [drawn(opened)]
    view = opened.locator(".card canvas").first
    box = view.bounding_box()
    opened.mouse.move(box["x"] + 80, box["y"] + 80)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 160, box["y"] + 100)
    opened.mouse.up()
    pictures.append(drawn(opened))
    for key in ("ArrowLeft", "ArrowUp", "+"):
        view.press(key)
        pictures.append(drawn(opened))
    for i, picture in enumerate(pictures):
        assert (picture[..., 3] > 0).mean() > 0.01, "something is drawn"
        assert not any(np.array_equal(picture, other) for other in pictures[:i])
    view.press("0")
    np.testing.assert_array_equal(drawn(opened), pictures[0])


def test_stages_seeds_attributes_and_motion(opened: Any) -> None:
    card = opened.locator(".card[data-method=transform2act]").last
    card.scroll_into_view_if_needed()
    assert card.locator("select").input_value() == "0"
    assert "seed 1 (best)" in card.inner_text()
    slider = card.locator("input[type=range]")
    slider.focus()
    opened.keyboard.press("Home")
    assert "at 10,000 steps" in card.inner_text()
    assert "2 bodies, 1 motor" in card.inner_text()
    card.locator("summary").click()
    card.locator("tbody tr").first.wait_for()
    assert card.locator("tbody tr").count() == 2
    play = card.get_by_role("button", name="Play")
    play.click()
    opened.wait_for_timeout(400)
    assert "x = " in card.inner_text()
    assert "final design" in card.inner_text()
    card.get_by_role("button", name="Stop").click()
    card.locator("select").select_option("1")
    assert "no motion recorded" in card.inner_text()
    assert card.get_by_role("button", name="Play").is_disabled()


# ---- the rest of the page --------------------------------------------------------------------------------------------------


def test_lineage_tables_videos_and_theme(opened: Any) -> None:
    lineage = opened.locator("#lineage-panels > details").first
    lineage.locator("summary").first.click()
    chart = lineage.locator("svg.chart")
    chart.focus()
    opened.keyboard.press("ArrowLeft")
    assert "fitness 2.5" in lineage.inner_text()
    lineage.get_by_text("Descent of the champion (2 species)").click()
    assert "species 2, generation 1, add <b>: 5 bodies" in lineage.inner_text()

    opened.locator("#ledger summary").click()
    rows = opened.locator("#ledger tbody th")
    before = rows.all_inner_texts()
    opened.locator("#ledger button.sort").first.click()
    assert rows.all_inner_texts() == sorted(before, reverse=True)
    opened.locator("#ledger button.sort").first.click()
    assert rows.all_inner_texts() == sorted(before)

    opened.locator("#videos-list summary").click()
    video = opened.locator("video")
    for _ in range(100):
        if video.evaluate("v => v.readyState"):
            break
        opened.wait_for_timeout(100)
    assert video.evaluate("v => v.videoWidth") == 48

    paper = "getComputedStyle(document.body).backgroundColor"
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"
    opened.locator("#theme").click()
    assert opened.evaluate(paper) == "rgb(20, 23, 28)"
    opened.locator("#theme").click()
    assert opened.evaluate(paper) == "rgb(255, 255, 255)"


def test_hostile_names_do_nothing(opened: Any) -> None:
    assert opened.title() == "study: codesign_bench report"
    assert opened.locator("img:not(.picture img)").count() == 0
    assert opened.locator(".card h4", has_text=HOSTILE).count() == 2


CONTRAST = """() => {
  const channel = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const colour = parse(getComputedStyle(node).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.getClientRects().length || node.closest("svg, :disabled, script, style")) continue;
    const [a, b] = [luminance(parse(getComputedStyle(node).color)), luminance(behind(node))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(node.outerHTML.slice(0, 80));
  }
  return found;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_width_and_theme(browser: Any, file: Path, theme: str, width: int) -> None:
    opened = Opened(browser, file, viewport={"width": width, "height": 800}, color_scheme=theme)
    page = opened.page
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page itself does not scroll sideways"
    assert page.evaluate(CONTRAST) == []
    names = "[...document.querySelectorAll('canvas, svg.chart, button, select, input')].filter((n) => n.getClientRects().length && "
    names += "!(n.ariaLabel || n.textContent.trim() || n.labels?.length)).map((n) => n.outerHTML.slice(0, 80))"
    assert page.evaluate(names) == [], "everything that can be used has a name"
    assert drawn(page).any()
    page.close()
    assert opened.said == []


def test_everything_can_be_reached_by_tab(opened: Any) -> None:
    reached = set()
    for _ in range(400):
        opened.keyboard.press("Tab")
        name = opened.evaluate("(n => n.id || n.className.baseVal || n.className || n.tagName)(document.activeElement)")
        reached.add(name)
        if name == "BODY":
            break
    assert {"skip", "theme", "sort", "metric", "chart", "CANVAS", "scroll"} <= reached
