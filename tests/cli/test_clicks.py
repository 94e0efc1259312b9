"""rankgrove clicks: from simulated logs to judgements and training data."""

from __future__ import annotations

import json

import pytest

import rankgrove as rg
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clicks")
    rg.write_letor(rg.make_web(12, n_docs=10, n_features=5, seed=1), path / "data.txt")
    words = "clicks simulate data.txt --system feature:1 --noise 1 --sessions 3000"
    out, _ = run(*words.split(), "--out", "log.csv", cwd=path)
    assert "3,000 sessions" in out
    return path


def test_summary_and_check(folder):
    out, _ = run("clicks", "summary", "log.csv", "--out", "summary.json", cwd=folder)
    assert "sessions without clicks" in out
    assert json.loads((folder / "summary.json").read_text())["n_sessions"] == 3000
    out, _ = run("clicks", "check", "log.csv", "-o", "check.json", cwd=folder)
    assert "Safe: " in out
    assert json.loads((folder / "check.json").read_text())["linked"] == 1


def test_fit(folder):
    out, _ = run("clicks", "fit", "log.csv", "-m", "ctr", "-m", "position-based", "--samples", "3",
                 "--out", "fit.json", cwd=folder)  # fmt: skip
    assert "position  examination  95 % interval" in out
    assert set(json.loads((folder / "fit.json").read_text())) == {"ctr", "position-based"}


def test_fit_shows_continuations(folder):
    words = "clicks fit log.csv -m dbn -m dependent-click --out going.json"
    out, _ = run(*words.split(), cwd=folder)
    found = json.loads((folder / "going.json").read_text())
    assert f"dbn: users continue with probability {found['dbn']['continuation'][0]:.3f}" in out
    first, second = found["dependent-click"]["continuation"][:2]
    assert f"after a click, by position {first:.3f} {second:.3f} " in out


def test_smoothed_labels(folder):
    words = "clicks judge log.csv --labels smoothed --out smoothed.txt"
    out, _ = run(*words.split(), "--data", "data.txt", "-m", "position-based", cwd=folder)
    assert "soft labels" in out
    data = rg.read_letor(folder / "data.txt")
    log = rg.read_clicks(folder / "log.csv")
    judged = rg.smoothed_judgements(log, data, rg.PositionBased()).dataset(data)
    written = rg.read_letor(folder / "smoothed.txt")
    assert sorted(written.y.tolist()) == pytest.approx(sorted(judged.y.tolist()))


def test_judge(folder):
    out, _ = run("clicks", "judge", "log.csv", "--out", "qrels.txt", "--samples", "0", cwd=folder)
    assert "grade 4" in out
    assert len(rg.read_qrels(folder / "qrels.txt")) == 12
    run("clicks", "judge", "log.csv", "--data", "data.txt", "--samples", "0", "--few", "pool",
        "--labels", "soft", "--out", "judged.txt", cwd=folder)  # fmt: skip
    assert 0 < rg.read_letor(folder / "judged.txt").y.max() < 1


def test_data(folder):
    run("clicks", "data", "log.csv", "data.txt", "--out", "rows.txt", cwd=folder)
    rows = rg.read_letor(folder / "rows.txt")
    head, *lines = (folder / "rows.txt.positions").read_text().splitlines()
    assert head == "position\tpair"
    assert rows.n_rows == len(lines)
    assert {line.split("\t")[0] for line in lines} == {str(p) for p in range(1, 11)}


def test_columns_bots_and_ubi(folder):
    text = "visit,query,document,position,click\n" + "".join(
        f"{s},a,{p},{p},{int(s == 1 or p == 1)}\n" for s in range(3) for p in range(6)
    )
    (folder / "zero.csv").write_text(text)
    words = ["clicks", "summary", "zero.csv", "--columns", "session=visit", "--first-position", "0"]
    out, said = run(*words, "--no-bots", cwd=folder)
    assert out.startswith("sessions                      2\n")
    assert "removed 1 session of suspected bots" in said
    (folder / "q.ndjson").write_text(
        '{"query_id": 1, "user_query": "a", "query_response_hit_ids": [7, 8]}\n'
        '{"query_id": 2, "user_query": "a", "query_response_hit_ids": [8, 7]}\n'
    )
    (folder / "e.ndjson").write_text(
        '{"query_id": 1, "action_name": "click", "event_attributes": {"object": {"object_id": 8}}}'
    )
    words = ["clicks", "summary", "e.ndjson", "--ubi", "q.ndjson"]
    out, _ = run(*words, cwd=folder)
    assert out.startswith("sessions                      2\n")
    with (folder / "e.ndjson").open("a") as file:
        for query in (3, 2):
            file.write(
                f'\n{{"query_id": {query}, "action_name": "buy", "event_attributes": '
                '{"object": {"object_id": 8}}}'
            )
    words += ["--ubi-clicks", "click,buy", "--ubi-positions", "hits"]
    _, said = run(*words, cwd=folder, status=2)
    assert "--ubi-unmatched drop" in said
    out, said = run(*words, "--ubi-unmatched", "drop", cwd=folder)
    assert "clicks                        2," in out
    assert "left out 1 event of searches" in said


def test_convert(folder):
    """A log of any form becomes one that commands without options of columns read."""
    log = rg.read_clicks(folder / "log.csv")
    text = (folder / "log.csv").read_text().replace('"session"', '"visit"', 1)
    (folder / "visits.csv").write_text(text)
    words = ["clicks", "convert", "visits.csv", "--columns", "session=visit", "--out", "c.parquet"]
    out, _ = run(*words, cwd=folder)
    assert out.endswith("written to c.parquet\n")
    converted = rg.read_clicks(folder / "c.parquet")
    assert repr(converted) == repr(log)
    assert converted.click.tolist() == log.click.tolist()


def test_several_systems_are_logged_together(folder):
    words = ["clicks", "simulate", "data.txt", "--sessions", "300", "--out", "two.csv"]
    run(*words, "-s", "feature:1", "-s", "feature:2", cwd=folder)
    data = rg.read_letor(folder / "data.txt")
    wanted = rg.simulate_clicks(data, [data.column(1), data.column(2)], sessions=300)
    assert rg.read_clicks(folder / "two.csv").click.tolist() == wanted.click.tolist()


def test_judgements_without_features_are_named(folder):
    text = (folder / "data.txt").read_text().splitlines(keepends=True)
    (folder / "fewer.txt").write_text("".join(text[:-1]))
    words = ["clicks", "judge", "log.csv", "--data", "fewer.txt", "--out", "few.txt"]
    _, said = run(*words, "--min-impressions", "1", "--samples", "0", cwd=folder)
    assert "The data lacks 1 of" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("convert log.csv --out log.txt", "The name of a click log must end in"),
        ("convert log.csv --out log.csv", "would overwrite a file that is read"),
        ("check data.txt", "the name of a click log must end in"),
        ("check no.csv", "no.csv: there is no such file"),
        ("check log.csv --columns click=clik", "no column 'clik' for the click"),
        ("check log.csv --columns clicks=click", "roles are session, query"),
        ("check log.csv --out log.csv", "would overwrite a file that is read"),
        ("summary log.csv --columns session=query", "twice"),
        ("summary data.txt --ubi data.txt --merge", "leave them out with --ubi"),
        ("summary data.txt --ubi data.txt", "data.txt:1: the line has no JSON"),
        ("summary log.csv --ubi-clicks buy", "--ubi-clicks is for OpenSearch's logs"),
        ("judge log.csv --labels soft --out q.txt", "Soft labels are no grades"),
        ("judge log.csv --labels soft --grades 3 --out q.csv", "--grades is for --labels grades"),
        ("judge log.csv --labels smoothed --out q.txt", "give --data FILE"),
        ("judge log.csv --labels smoothed --data data.txt --samples 9 --out q.txt", "no intervals"),
        ("judge log.csv --thresholds a --out q.txt", "as rising numbers"),
        ("data log.csv other.txt --out x.txt", "other.txt: there is no such file"),
        ("simulate data.txt -s feature:1 --out log.txt", "The name of a click log must end in"),
    ],
)
def test_mistakes(folder, words, message):
    _, said = run("clicks", *words.split(), cwd=folder, status=2)
    assert message in said
