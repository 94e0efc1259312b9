"""What a notebook shows: tables, pictures and progress, without a package or a warning."""

from __future__ import annotations

import io
import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.look import page_colours
from rankgrove.showing import html_table, in_notebook

DATA = rg.make_web(12, n_docs=8, n_features=4, seed=1)


@pytest.fixture(scope="module")
def model():
    return rg.LambdaMART(n_trees=4, min_leaf=3).fit(DATA, valid=DATA)


class _Texts(HTMLParser):
    """Collects what is shown, and checks that every tag is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(thing):
    page = _Texts()
    page.feed(thing._repr_html_())
    assert page.open == []
    return " | ".join(page.texts)


def test_tables_of_everything(model):
    assert "QueryDataset | rows | 93" in shown(DATA)
    assert "LambdaMART(min_leaf=3, n_trees=4)" in shown(model)
    assert "4 trees" in shown(model)
    assert "not trained yet" in shown(rg.MART())
    assert "text/html" in model._repr_mimebundle_()
    measured = rg.evaluate(model, DATA, ["ndcg@10", "map"])
    assert f"ndcg@10 | {measured.mean['ndcg@10']:.4f}" in shown(measured)
    compared = rg.compare({"model": model, "<b>f1</b>": DATA.column(1)}, DATA, "ndcg@10")
    assert "<b>f1</b> - model" in shown(compared)
    assert "<b>f1" not in compared._repr_html_()
    several = rg.compare({"model": model, "f1": DATA.column(1)}, DATA, ["ndcg@10", "map"])
    assert all(f"system | {name}" in shown(several) for name in ("ndcg@10", "map"))
    frame = several.to_pandas()
    assert frame["measure"].tolist() == ["ndcg@10", "map"]
    assert frame["difference"][1] == several["map"].contrasts[0].difference
    follows = rg.partial_dependence(model, DATA, 1, grid=[0.0, np.nan])
    assert f"missing | {follows.mean[1]:.4g}" in shown(follows)
    both = rg.partial_dependence(model, DATA, (1, 2), grid=3)
    assert f"{both.mean[2, 0]:.4g}" in shown(both)
    explained = rg.explain(model, DATA, DATA.query_ids[0])
    assert repr(explained.table(0)) == explained.table(0).text()
    assert "difference" in repr(explained.why(0, 1)).splitlines()[-1]
    assert "mean absolute contribution" in shown(explained)
    assert "score" in shown(explained.table(0))
    assert "difference" in shown(explained.why(0, 1))
    folds = list(rg.k_fold(DATA, 3, valid=True))
    space = {"n_leaves": [2, 4]}
    tuned = rg.tune(rg.MART(n_trees=2, min_leaf=3), folds, space, measures="ndcg@10")
    assert "the best of 2" in shown(tuned)
    page = rg.report(model, DATA, n_documents=0)
    assert page.summary in shown(page)
    assert '.save("report.html") writes it' in shown(page)


def test_the_cell_of_a_report_wraps_and_says_where_it_was_written(model, tmp_path):
    page = rg.report(model, DATA, n_documents=0, out=tmp_path / "x.html")
    assert f"written to {tmp_path / 'x.html'}" in shown(page)
    assert "writes it" not in shown(page)
    assert "nowrap" not in page._repr_html_()


def test_what_is_shown_is_escaped():
    made = html_table("<t>", ["<h>"], [["<c>"]], "<n>")
    assert not re.search("<[thcn]>", made)


def test_figures_are_pictures(model):
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    figure = rg.plot.learning_curve(model)
    data, size = figure._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size["width"] > 300
    assert dict(matplotlib.rcParams) == before
    pyplot = sys.modules.get("matplotlib.pyplot")
    assert pyplot is None or not pyplot.get_fignums()


def test_inline_figures_are_pyplots_and_shown_once(model, monkeypatch):
    """A cell shows pyplot's figures, and its value: one of the two is left out."""
    matplotlib = pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    shown = []
    display = SimpleNamespace(display=lambda bundle, **options: shown.append((bundle, options)))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("rankgrove.reporting.figure.in_notebook", lambda: True)
    with monkeypatch.context() as inline:
        inline.setattr(matplotlib, "get_backend", lambda: "inline")
        figure = rg.plot.learning_curve(model)
    assert [pyplot.figure(number) for number in pyplot.get_fignums()] == [figure]
    figure._ipython_display_()
    assert pyplot.get_fignums() == []
    ((bundle, options),) = shown
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert options["metadata"]["image/png"]["width"] > 300
    rg.plot.learning_curve(model)  # another backend's windows are left alone
    assert pyplot.get_fignums() == []


def test_the_backend_is_there_before_settings_change(model, monkeypatch):
    """In a notebook it changes a setting (interactive) when it is loaded, which must stay so."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setattr("rankgrove.reporting.look.in_notebook", lambda: True)
    before = matplotlib.is_interactive()
    loaded = SimpleNamespace(draw_if_interactive=lambda: matplotlib.interactive(not before))
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", loaded)
    try:
        rg.plot.learning_curve(model)
        assert matplotlib.is_interactive() is not before
    finally:
        matplotlib.interactive(before)


def test_figures_have_the_colours_of_the_page(model):
    image = pytest.importorskip("matplotlib.image")
    colours = page_colours()
    assert colours["c0"] == "#0b6bb0"
    picture = image.imread(io.BytesIO(rg.plot.importance(model, DATA)._repr_png_()[0]))
    pixels = np.unique(np.round(picture[..., :3] * 255).astype(int).reshape(-1, 3), axis=0)
    there = {"#{:02x}{:02x}{:02x}".format(*pixel) for pixel in pixels.tolist()}
    assert {colours["c0"], colours["grid"]} <= there


def test_progress_in_a_notebook(monkeypatch, capsys):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook()
    rg.MART(n_trees=3, min_leaf=3, progress=True).fit(DATA, valid=DATA)  # a warning is an error
    out, complaints = capsys.readouterr()
    assert complaints == ""
    assert out.startswith("\rMART: 1 of 3,")
    assert re.fullmatch(
        r"MART: 3 of 3, ndcg@10 best [\d.]+ in round \d",
        out.rstrip(" \n").split("\r")[-1],
    )
    assert out.endswith("\n")
    rg.BaggedRanker(rg.MART(n_trees=2, min_leaf=3), n_models=2, progress=True).fit(DATA)
    assert "BaggedRanker: 2 of 2, models" in capsys.readouterr().out
    rg.SVMMap(C=1, progress=True).fit(DATA)
    assert capsys.readouterr().out.startswith("\rSVMMap")
    rg.CoordinateAscent(n_restarts=1, n_iterations=1, progress=True).fit(DATA, valid=DATA)
    assert re.search(r"best [\d.]+ in pass \d", capsys.readouterr().out)


def test_progress_is_one_display_that_is_replaced(monkeypatch, capsys):
    """No line is left behind, and the last one says how training ended."""
    shown = []

    class Handle:
        def update(self, bundle, raw):
            shown.append(bundle["text/plain"])

    def display(bundle, raw, display_id):
        assert display_id is True
        shown.append(bundle["text/plain"])
        return Handle()

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    model = rg.MART(n_trees=200, min_leaf=3, early_stopping=3, progress=True).fit(DATA, valid=DATA)
    values = model.history_["valid"]["ndcg@10"]
    done, best = len(values), f"ndcg@10 best {max(values):.4f} in round {model.best_round_}"
    assert shown[-1] == f"MART: {done} of 200, stopped early; {best}"
    assert len(shown) == len(set(shown))
    assert capsys.readouterr() == ("", "")


def test_no_notebook_here():
    assert not in_notebook()
    assert np.isfinite(DATA.y).all()


def test_results_of_operations_are_tables():
    """Pruning and the exact combination show themselves in a notebook."""
    data = rg.make_web(15, n_docs=10, n_features=5, seed=1)
    few = {"n_trees": 6, "n_leaves": 4, "min_leaf": 2}
    one, other = rg.LambdaMART(**few).fit(data), rg.MART(**few).fit(data)
    assert "<table" in rg.prune(one, data, tolerance=0.1)._repr_html_()
    assert "alpha" in rg.optimal_combination(one, other, data, "ndcg@10")._repr_html_()
