"""codesign-bench plot: the picture of a run's design distribution."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from codesign_bench.analysis.design_distribution import COLUMNS, draw_distribution, read_distribution
from codesign_bench.commands import plot
from codesign_bench.errors import CodesignError, ConfigError
from tests.reference.sentences import assert_one_sentence

ATTRIBUTES = ("slant", "length", "motor strength", "radius", "start extension")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with what the command reads."""
    folder = tmp_path / "run"
    (folder / "tables").mkdir(parents=True)
    (folder / "config.yaml").write_text("method: {name: continuous}\nenv: {name: gap}\nseed: 3\n")
    rows = [
        (i, 100 * i, part, attribute, 0.01 * i, 0.1 - 0.01 * i, -0.4 - 0.02 * i)
        for i in range(6)
        for part in ("torso", "left front shin")
        for attribute in ATTRIBUTES
        if (part, attribute) != ("torso", "motor strength")
    ]
    pd.DataFrame(rows, columns=COLUMNS).to_csv(folder / "tables" / "design_distribution.csv", index=False)
    return folder


def test_one_panel_for_each_attribute(run: Path) -> None:
    figure = draw_distribution(read_distribution(run), "A title")
    panels = [ax for ax in figure.axes if ax.lines]
    named = {ax.get_title(): ax for ax in panels}
    assert len(panels) == len(named) == 9
    assert {"left front shin, length", "torso, radius"} <= named.keys()
    assert "torso, motor strength" not in named
    line, band = named["left front shin, length"].lines[-1], named["left front shin, length"].collections[0]
    assert line.get_xdata().tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    assert line.get_ydata().tolist() == pytest.approx([0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    corners = band.get_paths()[0].get_extents()
    assert (corners.y0, corners.y1) == pytest.approx((-0.1, 0.1))
    assert named["left front shin, length"].texts[0].get_text() == "0.400 → 0.500 m\nsigma 0.10 → 0.05"
    assert named["left front shin, slant"].texts[0].get_text().startswith("-0.400 → -0.500 m")


def test_the_command(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "picture.png"
    assert plot.main([f"run={run}", f"out={out}"]) == 0
    assert capsys.readouterr().out == f"{out}: 9 attributes, 500 steps\n"
    first = out.read_bytes()
    assert Image.open(out).width > 1500
    assert plot.main([f"run={run}", f"out={out}"]) == 0
    assert out.read_bytes() == first, "drawn again over its own file, with the same bytes"


def test_what_is_refused(run: Path, tmp_path: Path) -> None:
    def refused(*arguments: str) -> CodesignError:
        with pytest.raises(CodesignError) as error:
            plot.main(list(arguments))
        return error.value

    assert_one_sentence(refused(f"run={run}", "out=picture.txt"), "out is 'picture.txt'; allowed are names that end in .png")
    assert_one_sentence(refused(f"run={tmp_path}", "out=a.png"), "allowed is the folder of a run")
    table = run / "tables" / "design_distribution.csv"
    empty, whole = (",".join(COLUMNS) + "\n").encode(), table.read_bytes()
    strange = whole.replace(b"radius", b"colour")
    for content in (b"", b"iteration,steps\n1,2\n", b"\xff\xfe\x00", empty, strange, whole + b"7,x,y\n"):
        table.write_bytes(content)
        assert_one_sentence(refused(f"run={run}", f"out={tmp_path / 'a.png'}"), "is not a table of a design distribution")
    table.unlink()
    with pytest.raises(ConfigError, match="allowed is the folder of a run of continuous design"):
        read_distribution(run)
    assert not (tmp_path / "a.png").exists()
