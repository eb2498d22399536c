"""Figures for papers: their width, text, key and order; and figures within other figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from sojourn import figures
from sojourn.errors import UserError
from sojourn.figures import style
from sojourn.judgement import likeness
from sojourn.records import Run


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """pfifo and fq_codel, three seeds each."""
    return synthetic.pair(tmp_path_factory.mktemp("pair"))


DRAWN: dict[str, Callable[..., Figure]] = {
    "timeline": lambda runs, **how: figures.timeline(runs[0], **how),
    "density": lambda runs, **how: figures.density(runs[0], **how),
    "cdf": lambda runs, **how: figures.cdf(runs, "ping", **how),
    "bars": figures.bars,
    "tradeoff": figures.tradeoff,
}


def texts(figure: Figure) -> list[Text]:
    figure.canvas.draw()
    return [text for text in figure.findobj(Text) if text.get_text().strip()]


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("paper", [figures.ONE_COLUMN, figures.TWO_COLUMNS])
def test_a_paper_s_figure_is_as_wide_as_it_is_printed_and_its_text_no_larger(
    pair: list[Run], name: str, paper: figures.Paper
) -> None:
    figure = DRAWN[name](pair, paper=paper)
    assert figure.get_size_inches()[0] == paper.width
    sizes = {float(text.get_fontsize()) for text in texts(figure)}
    assert max(sizes) <= paper.size
    assert min(sizes) >= style.LEAST_SIZE


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_for_a_paper_has_no_title(pair: list[Run], name: str) -> None:
    title = pair[0].meta.title
    assert any(title in text.get_text() for text in texts(DRAWN[name](pair)))
    small = DRAWN[name](pair, paper=figures.TWO_COLUMNS)
    assert not any(title in text.get_text() for text in texts(small))


def test_a_given_height_and_font_are_used(pair: list[Run]) -> None:
    paper = figures.ONE_COLUMN.with_(height=2.0, font="serif", size=7.0)
    figure = figures.cdf(pair, "ping", paper=paper)
    assert tuple(figure.get_size_inches()) == (3.5, 2.0)
    label = figure.axes[0].xaxis.label
    assert label.get_fontfamily() == ["serif"]
    assert label.get_fontsize() == 7.0


def test_a_paper_chooses_names_colours_and_order(pair: list[Run]) -> None:
    first, second = likeness.labels(pair)
    paper = figures.ONE_COLUMN.with_(
        order=[second, first], labels={first: "drop-tail"}, colours={first: "#123456"}
    )
    figure = figures.cdf(pair, "ping", paper=paper)
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [second, "drop-tail"]
    lines = {str(line.get_gid()): line for line in figure.findobj(Line2D)}
    assert lines["cdf drop-tail"].get_color() == "#123456"
    one = figures.bars(pair, paper=figures.ONE_COLUMN.with_(order=[second]))
    assert [tick.get_text() for tick in one.axes[0].get_yticklabels()] == [second]


@pytest.mark.parametrize("wrong", [{"order": ["red"]}, {"labels": {"red": "x"}}])
def test_a_label_that_no_run_has_is_refused(pair: list[Run], wrong: dict[str, object]) -> None:
    with pytest.raises(UserError, match="no Run is labelled 'red'"):
        figures.tradeoff(pair, paper=figures.ONE_COLUMN.with_(**wrong))


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_drawn_into_given_axes(pair: list[Run], name: str) -> None:
    figure = Figure(figsize=(11, 7))
    left, right = figure.subplots(1, 2)
    assert DRAWN[name](pair, ax=left) is figure
    assert tuple(figure.get_size_inches()) == (11, 7)
    assert not right.has_data()
    inside = [left, *left.child_axes]
    assert any(panel.has_data() for panel in inside)
    assert not figure.texts
    # The caller decides on the style of these axes.
    assert left.spines["top"].get_visible()


def test_a_figure_for_a_paper_leaves_the_next_one_as_it_was(pair: list[Run]) -> None:
    before = style.render(figures.cdf(pair, "ping"), "svg")
    with pytest.raises(UserError):
        figures.cdf(pair, "ping", paper=figures.ONE_COLUMN.with_(order=["red"]))
    figures.cdf(pair, "ping", paper=figures.ONE_COLUMN)
    assert style.render(figures.cdf(pair, "ping"), "svg") == before


def test_every_figure_of_some_runs_is_drawn_for_a_paper(pair: list[Run]) -> None:
    first = likeness.labels(pair)[0]
    drawn = figures.all_for(pair, paper=figures.ONE_COLUMN.with_(labels={first: "drop-tail"}))
    assert set(drawn) == set(figures.all_for(pair))
    assert {figure.get_size_inches()[0] for figure in drawn.values()} == {3.5}


@pytest.mark.parametrize("paper", [figures.ONE_COLUMN, figures.TWO_COLUMNS])
def test_no_text_is_cut_at_the_edge_of_the_figure(pair: list[Run], paper: figures.Paper) -> None:
    for name, figure in figures.all_for(pair, paper=paper).items():
        FigureCanvasAgg(figure)
        figure.draw_without_rendering()
        # Ticks beyond an axis's ends have labels that are not drawn.
        ticks = {
            id(word)
            for axes in figure.findobj(Axes)
            for axis in (axes.xaxis, axes.yaxis)
            for word in (*axis.get_ticklabels(), *axis.get_ticklabels(minor=True))
        }
        for word in figure.findobj(Text):
            if not word.get_text().strip() or not word.get_visible() or id(word) in ticks:
                continue
            room, taken = figure.bbox.padded(1), word.get_window_extent()
            inside = room.contains(taken.x0, taken.y0) and room.contains(taken.x1, taken.y1)
            assert inside, (name, word.get_text())


def test_pgf_without_latex_is_refused_with_an_error(
    pair: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    figure = figures.cdf(pair, "ping", paper=figures.ONE_COLUMN)
    with pytest.raises(UserError, match="writing pgf needs xelatex, which is not installed"):
        figures.save(figure, tmp_path / "cdf.pgf")
    assert not (tmp_path / "cdf.pgf").exists()
