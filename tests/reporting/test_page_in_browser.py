"""The report in a browser: what a user presses and sees. Skipped where there is no browser."""

from __future__ import annotations

import os
import re
import shutil

import numpy as np
import pytest

import rankgrove as rg

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# What follows an action is asked for by `expect`, which waits until the page has answered.
expect = playwright.expect
expect.set_options(timeout=30_000)  # the machine may be busy
HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def browser():
    """Return a browser: one that is installed, or playwright's own."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as tools:
        try:
            own = tools.chromium.launch(
                executable_path=os.environ.get("RANKGROVE_BROWSER", found), args=["--no-sandbox"]
            )
        except playwright.Error:
            pytest.skip("there is no Chromium: install it, or name one by RANKGROVE_BROWSER")
        yield own
        own.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    train, test = (rg.make_artificial(60, n_docs=20, n_features=8, seed=seed) for seed in (1, 2))
    names = [f"q{k}" for k in range(59)] + [HOSTILE]
    data = rg.QueryDataset(
        np.array(test.X), test.y, qid=np.repeat(names, 20), feature_names=[*"abcdefg", HOSTILE]
    )
    learned = rg.QueryDataset(
        np.array(train.X), train.y, train.qid, feature_names=data.feature_names
    )
    models = {
        "few": rg.LambdaMART(n_trees=3).fit(learned, valid=data),
        "many": rg.LambdaMART(n_trees=30).fit(learned, valid=data),
        HOSTILE: rg.LambdaRank(n_epochs=5).fit(learned, valid=data),
    }
    path = tmp_path_factory.mktemp("report") / "report.html"
    rg.report(models, data, ["ndcg@10", "map"], path)
    return path, models, data


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A report of models that are made of others."""
    train, test = (rg.make_artificial(40, n_docs=15, n_features=6, seed=seed) for seed in (1, 2))
    boosted = rg.LambdaMART(n_trees=20).fit(train, valid=test)
    net = rg.LambdaRank(n_epochs=3).fit(train, valid=test)
    base = rg.LambdaMART(n_trees=10)
    bag = rg.BaggedRanker(base, n_models=5, query_fraction=0.5).fit(train, valid=test)
    models = {
        "lambdamart": boosted,
        "bag_of_5": bag,
        "apart": rg.CombinedRanker([boosted, net]).with_weights(np.array([1.0, -0.2]), test, 0.5),
        "adapted": rg.Trada(boosted, beta=5).fit(test),
        "pruned": rg.prune(boosted, test, "ndcg@10", 0.05),
    }
    path = tmp_path_factory.mktemp("changed") / "report.html"
    rg.report(models, test, ["ndcg@10"], path)
    return path, models


class Visit:
    """A page that is open, and what it complained of."""

    def __init__(self, browser, path, **how):
        # Smooth scrolling would go on, and move what is pressed, while a test goes on too.
        usual = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"}
        self.context = browser.new_context(**usual | how)
        self.page = self.context.new_page()
        self.complaints, self.requests = [], []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append("a dialog"))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.settle()  # charts are drawn anew once their columns are known

    def settle(self):
        """Wait until what comes with the next frame (scroll, toggle, resize) is over."""
        self.page.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )

    @property
    def ids(self):
        return self.page.locator("#query-list tbody td:first-child")

    @property
    def part(self):
        """What is said of the part of the list that is shown."""
        return self.page.locator(".pager [role=status]")

    @property
    def query(self):
        """The name of the query whose rankings are shown."""
        return self.page.locator("#query-detail h3")

    def close(self):
        self.settle()  # complaints that are on their way arrive first
        self.context.close()
        assert self.complaints == []
        loaded = [url for url in self.requests if not url.startswith("data:")]
        assert len(loaded) == 1  # the page itself


@pytest.fixture
def visit(browser, report):
    made = Visit(browser, report[0])
    yield made
    made.close()


def test_every_section_is_drawn(visit):
    titles = visit.page.locator("main h2").all_inner_texts()
    assert titles == [
        "Measures", "Queries", "Learning curves", "Features", "Scores by label",
        "Size, quality and scoring time",
    ]  # fmt: skip
    assert visit.page.locator("#toc a").count() == len(titles)
    for section in visit.page.locator("main section").all():
        assert section.locator("svg").count() > 0


def test_models_made_of_others(browser, changed):
    visit = Visit(browser, changed[0])
    page, models = visit.page, changed[1]
    charts = page.locator("#learning-charts .chart")
    assert charts.locator("figcaption").all_inner_texts() == [
        "ndcg@10 by trees\non valid data; thin lines: the models of a bag",
        "apart: ndcg@10 by trees\non valid data",
        "apart: ndcg@10 by epochs\non valid data",
    ]
    # Of adaptation and of pruning there is no record by trees.
    assert charts.first.locator(".legend li").all_inner_texts() == [
        "lambdamart",
        "bag_of_5, mean of 5",
    ]
    strokes = "(all) => all.map((one) => one.style.strokeWidth)"
    drawn = charts.first.locator("svg[role=img] > path[d^=M][style*='fill: none']")
    assert sorted(drawn.evaluate_all(strokes)) == ["1", "1", "1", "1", "1", "2", "2"]
    assert charts.first.locator("svg[role=img] circle").count() == 5  # what every model kept
    assert charts.nth(1).locator(".legend li").all_inner_texts() == ["LambdaMART × 1"]
    assert charts.nth(2).locator(".legend li").all_inner_texts() == ["LambdaRank × −0.2"]
    charts.first.locator("summary").click()
    heads = charts.first.locator("details th")
    expect(heads).to_have_text(["trees", "lambdamart", "bag_of_5, mean of 5"])
    formula = page.locator("#alpha-charts figcaption small").inner_text()
    assert formula == "ndcg@10 of (1 − alpha) LambdaMART − alpha LambdaRank"
    assert page.locator("#adaptation-charts svg[role=img]").count() == 2
    ticks = page.locator("#pruning-charts svg[role=img] text[text-anchor=middle]").all()
    places = {
        float(one.inner_html()): float(one.get_attribute("x"))
        for one in ticks
        if one.inner_html().replace(".", "").isdigit()
    }
    assert len(places) > 1
    assert sorted(places, key=places.get) == sorted(places, reverse=True)  # fewer to the right
    lines = page.locator("#dependence-charts .chart").first.locator(
        "path[style*='stroke-width: 2']"
    )
    assert lines.count() == len(models)  # the bag's too
    visit.close()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_clicks(browser, tmp_path, width, scheme):
    data = rg.make_web(12, n_docs=8, n_features=4, seed=1)
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=2000, seed=1)
    rows = rg.click_data(log, data)
    names = {"naive": None, HOSTILE: "additive"}
    models = {
        name: rg.LambdaMART(n_trees=2, n_leaves=4, position_bias=method).fit(rows)
        for name, method in names.items()
    }
    rg.report(models, data, ["ndcg@10"], tmp_path / "report.html", clicks=log)
    how = {"viewport": {"width": width, "height": 844}, "color_scheme": scheme}
    visit = Visit(browser, tmp_path / "report.html", **how)
    section = visit.page.locator("#clicks")
    expect(visit.page.locator("#toc a", has_text="Clicks")).to_have_count(1)
    expect(section.locator("#click-verdict b")).to_have_text(
        f"Safe: {', '.join(rg.check_clicks(log).safe)}."
    )
    charts = section.locator(".chart")
    assert charts.locator("figcaption").all_inner_texts() == [
        "Clicks per impression\nby position",
        "Examination by position\nrelative to the first position; area: 95 % interval",
    ]
    legend = charts.nth(1).locator(".legend li")
    assert legend.all_inner_texts() == ["the log’s check", HOSTILE]
    charts.first.locator("summary").click()
    rows_shown = charts.first.locator("details tbody tr")
    expect(rows_shown).to_have_count(log.n_positions)
    summary = log.summary()
    first = [f"{summary.impressions[0]:,}", f"{summary.clicks[0]:,}"]
    assert rows_shown.first.locator("td").all_inner_texts()[1:3] == first
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.close()


@pytest.mark.parametrize(("width", "media"), [(1280, "screen"), (390, "screen"), (700, "print")])
def test_a_name_stands_in_one_line(browser, changed, width, media):
    visit = Visit(browser, changed[0], viewport={"width": width, "height": 844})
    page = visit.page
    page.emulate_media(media=media)
    visit.settle()
    page.locator("#sort-a").click()  # the arrow takes no room from it
    lines = """(node) => {
      const range = document.createRange();
      range.selectNodeContents(node);
      return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size;
    }"""
    for name in ("#sort-a .two", "#sort-difference .two", "#measures .name span:nth-child(2)"):
        assert page.locator(name).first.evaluate(lines) == 1, name
    visit.close()


def test_the_largest_loss_is_drawn(browser, tmp_path):
    """Also where many queries share a place of the chart."""
    n = 3000
    data = rg.QueryDataset(None, np.tile([1, 0], n), qid=np.repeat(np.arange(n), 2))
    good, other = np.tile([1.0, 0.0], n), np.tile([1.0, 0.0], n)
    other[:2] = [0.0, 1.0]
    for models in ({"a": good, "b": other}, {"a": other, "b": good}):
        rg.report(models, data, "mrr", tmp_path / "r.html")
        visit = Visit(browser, tmp_path / "r.html", viewport={"width": 390, "height": 844})
        paths = visit.page.locator("#wins svg[role=img] path")
        assert sorted(
            paths.evaluate_all("(all) => all.map((p) => p.getAttribute('d') !== '')")
        ) == [
            False,
            True,
        ]
        visit.close()


def test_sorting(visit, report):
    _, models, data = report
    values = {
        name: rg.evaluate(model, data, "ndcg@10").per_query["ndcg@10"]
        for name, model in models.items()
    }
    best = max(("many", HOSTILE), key=lambda name: values[name].mean())
    order = np.argsort(-(values[best] - values["few"]), kind="stable")
    expect(visit.ids).to_have_text([str(data.query_ids[q]) for q in order[:15]])
    visit.page.locator("#sort-a").click()
    head = visit.page.locator("th:has(#sort-a)")
    expect(head).to_have_attribute("aria-sort", "descending")
    shown = [
        float(t) for t in visit.page.locator("#query-list tbody td:nth-child(3)").all_inner_texts()
    ]
    assert shown == sorted(shown, reverse=True)
    assert shown[0] == pytest.approx(values["few"].max(), abs=6e-5)
    visit.page.keyboard.press("Enter")  # the head keeps the focus
    expect(head).to_have_attribute("aria-sort", "ascending")
    visit.page.locator("#sort-id").click()
    # as numbers, not as texts
    expect(visit.ids).to_have_text([HOSTILE, *(f"q{k}" for k in range(14))])


def test_searching_and_pages(visit):
    visit.page.locator("#search").fill("Q1")
    expect(visit.part).to_have_text("1–11 of 11")
    shown = visit.ids.all_inner_texts()
    assert sorted(shown) == sorted(["q1", *(f"q{k}" for k in range(10, 20))])
    visit.page.locator("#search").fill("nothing")
    expect(visit.ids).to_have_count(0)
    expect(visit.page.get_by_text("No query id contains this text.")).to_be_visible()
    visit.page.locator("#search").fill("")
    visit.page.locator("#later").click()
    expect(visit.part).to_have_text("16–30 of 60")
    for _ in range(2):
        visit.page.keyboard.press("Enter")  # the button keeps the focus
    expect(visit.part).to_have_text("46–60 of 60")
    expect(visit.page.locator("#later")).to_be_disabled()


def test_the_rankings_of_a_query(visit, report):
    _, models, data = report
    page = visit.page
    heads = page.locator("#query-detail .pair h4")
    page.locator("#search").fill("q7")
    page.locator("#query-list tbody tr").click()
    page.select_option("#pick-b", label="many")
    expect(visit.query).to_have_text("Query q7")
    expect(heads).to_have_text(["few", "many"])
    rows = np.flatnonzero(data.qid == "q7")
    for k, name in enumerate(("few", "many")):
        order = rows[np.argsort(-models[name].predict(data)[rows], kind="stable")]
        shown = page.locator(".ranks").nth(k).locator(".doc").all_inner_texts()
        assert [int(one.replace(",", "")) - 1 for one in shown] == order[:15].tolist()
        labels = page.locator(".ranks").nth(k).locator(".label").all_inner_texts()
        assert [float(one) for one in labels] == data.y[order[:15]].tolist()
    page.locator("#query-detail .more").click()
    expect(page.locator(".ranks").first.locator("li")).to_have_count(20)
    third = page.locator(".ranks button").nth(2)
    third.click()
    expect(third).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".ranks button[aria-pressed=true]")).to_have_count(2)  # in both rankings
    document = third.locator(".doc").inner_text()
    expect(page.locator("#why h4")).to_have_text(re.compile(f"^row {document},"))
    assert page.locator("#why svg g").count() >= 2
    page.select_option("#pick-a", label="many")
    page.select_option("#pick-b", label="few")  # another pair: what moved most is shown
    expect(heads).to_have_text(["many", "few"])
    ranks = [
        dict(
            zip(
                *(one.locator(f".{what}").all_inner_texts() for what in ("doc", "rank")),
                strict=True,
            )
        )
        for one in page.locator(".ranks").all()
    ]
    moves = {d: abs(int(ranks[0].get(d, 99)) - int(ranks[1].get(d, 99))) for d in ranks[0]}
    near = [d for d in moves if min(int(ranks[0][d]), int(ranks[1].get(d, 99))) <= 10]
    shown = page.locator(".ranks button[aria-pressed=true] .doc").first.inner_text()
    assert moves[shown] == max(moves[d] for d in near)
    page.select_option("#pick-b", label="Ideal order")
    expect(heads).to_have_text(["many", "Ideal order"])
    labels = page.locator(".ranks").nth(1).locator(".label").all_inner_texts()
    assert labels == sorted(labels, reverse=True)


def test_by_keyboard(visit):
    page = visit.page
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#main$"))
    expect(page.locator("#main")).to_be_focused()
    first, second = visit.ids.all_inner_texts()[:2]
    rows = page.locator("#query-list tbody tr")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(visit.query).to_have_text(f"Query {second}")
    expect(rows.nth(1)).to_be_focused()
    expect(rows.nth(1)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowUp")
    expect(visit.query).to_have_text(f"Query {first}")
    page.keyboard.press("PageDown")
    expect(visit.part).to_have_text("16–30 of 60")
    expect(rows.first).to_be_focused()
    expect(rows.first).to_have_css("outline-style", "solid")
    page.locator(".ranks button").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".ranks button").nth(1)).to_have_attribute("aria-pressed", "true")


def test_tooltips_and_numbers(visit):
    page = visit.page
    chart = page.locator("#learning-charts svg[role=img]").first
    chart.scroll_into_view_if_needed()
    visit.settle()  # scrolling hides the tip
    chart.hover()
    tip = page.locator("#tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text("many: 0.")
    page.locator("#learning-charts details summary").first.click()
    rows = page.locator("#learning-charts details table tbody tr")
    expect(rows).to_have_count(30)  # filled once the browser says that it is open


def test_a_press_on_the_differences_opens_a_query(visit):
    area = visit.page.locator("#wins svg[role=img] rect").last
    area.scroll_into_view_if_needed()
    visit.settle()
    box = area.bounding_box()
    visit.page.mouse.click(box["x"] + box["width"] - 1, box["y"] + 20)
    expect(visit.part).to_have_text("46–60 of 60")
    shown = visit.page.locator("#query-list tbody tr[aria-selected=true] td").nth(4).inner_text()
    visit.page.locator("#sort-difference").click()
    head = visit.page.locator("th:has(#sort-difference)")
    expect(head).to_have_attribute("aria-sort", "ascending")
    least = visit.page.locator("#query-list tbody tr td:nth-child(5)").first.inner_text()
    assert shown == least


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_it_fits(browser, report, scheme, width):
    """Nothing sticks out to the right, whatever the width; texts can be read."""
    visit = Visit(browser, report[0], viewport={"width": width, "height": 844}, color_scheme=scheme)
    assert visit.page.evaluate("document.documentElement.scrollWidth") == width
    for chart in visit.page.locator(".chart, .card").all():
        box = chart.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    for text in ("body", ".lead", ".facts", "thead th", ".verdict", "figcaption small"):
        assert visit.page.evaluate(CONTRAST, text) >= 4.5, text
    for chip in visit.page.locator(".label").all()[:30]:
        assert chip.evaluate(CONTRAST_OF) >= 4.5
    visit.close()


def test_it_prints(browser, report):
    visit = Visit(browser, report[0], color_scheme="dark")
    visit.page.emulate_media(media="print")
    assert not visit.page.locator(".toc").is_visible()
    background = visit.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert background == "rgb(255, 255, 255)"  # paper is light
    assert len(visit.page.pdf()) > 10_000
    visit.page.set_viewport_size({"width": 700, "height": 1000})  # about a sheet's
    visit.settle()
    head = visit.page.locator("#query-list thead th:visible")
    assert head.evaluate_all("(all) => all.map((one) => one.clientWidth >= 45)") == [True] * 4
    visit.close()


@pytest.mark.slow
def test_ten_thousand_queries(browser, tmp_path):
    rng = np.random.default_rng(0)
    n = 10_000
    data = rg.QueryDataset(None, rng.integers(0, 3, 3 * n), qid=np.repeat(np.arange(n), 3))
    models = {name: data.y + rng.normal(size=3 * n) for name in ("a", "b")}
    rg.report(models, data, ["ndcg@10", "map"], tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 2.5e6
    visit = Visit(browser, tmp_path / "r.html")
    assert visit.page.locator("#query-list tbody tr").count() == 15
    assert visit.page.evaluate("document.querySelectorAll('*').length") < 5000
    visit.page.locator("#search").fill("9999")
    expect(visit.ids).to_have_text(["9999"])
    visit.page.locator("#sort-id").click()
    left_out = visit.page.locator(".lead").nth(1).inner_text()
    assert left_out.startswith("10,000 queries.")
    visit.close()


CONTRAST_OF = """(node) => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map(
    (v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
  ).reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  let behind = node, back = [0, 0, 0, 0];
  while (behind && (back.length > 3 && back[3] === 0)) {
    back = parse(getComputedStyle(behind).backgroundColor);
    behind = behind.parentElement;
  }
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(back)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""
CONTRAST = f"(name) => ({CONTRAST_OF})(document.querySelector(name))"


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    data = rg.make_web(60, n_docs=10, n_features=5, seed=1)
    best = rg.AutoRanker("ndcg@10", n_fits=15, n_threads=1).fit(data)
    best.failed_ = {HOSTILE: HOSTILE}
    path = tmp_path_factory.mktemp("search") / "auto.html"
    rg.report(best, out=path, title=HOSTILE)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_search(browser, search, width, scheme):
    visit = Visit(browser, search, viewport={"width": width, "height": 844}, color_scheme=scheme)
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.locator("#toc a").all_inner_texts() == [
        "Leaderboard", "Choice", "Search", "Parameters", "Failed",
    ]  # fmt: skip
    assert page.locator("#leaderboard tbody tr").count() == 3
    assert page.locator("#leaderboard .span svg circle").count() == 3
    charts = page.locator("#search-charts .chart")  # seconds are known as well
    assert charts.locator("figcaption").count() == 2
    charts.first.locator("summary").click()
    expect(charts.first.locator("tbody tr")).to_have_count(3)
    assert page.locator("h1").inner_text() == HOSTILE
    visit.close()
