"""docs/results.md: every experiment has its place there, and the tool fills it from a folder."""

from __future__ import annotations

import re

import pytest
from tools import results

from rankgrove_papers.catalogue import EXPERIMENTS


def places():
    return [match[1] for match in results.BLOCK.finditer(results.PAGE.read_text())]


def test_every_experiment_has_its_place():
    assert sorted(places()) == sorted(one.name for one in EXPERIMENTS)


@pytest.mark.parametrize("one", EXPERIMENTS, ids=lambda one: one.name)
def test_every_place_is_filled_with_command_and_date(one):
    (text,) = (m[0] for m in results.BLOCK.finditer(results.PAGE.read_text()) if m[1] == one.name)
    command = rf"^`rankgrove reproduce {one.name} --scale (full|small) --out results`, \d{{4}}-"
    assert re.search(command, text, re.MULTILINE)
    assert "\n|" in text  # a table
    for _, file in results.PICTURE.findall(text):
        assert (results.PAGE.parent / file).is_file()


def test_a_folder_of_results_goes_into_the_page(tmp_path, monkeypatch):
    page, pictures = tmp_path / "results.md", tmp_path / "assets"
    page.write_text(
        "Before.\n<!-- begin a-b -->\nold\n<!-- end -->\nBetween.\n<!-- begin c -->\n<!-- end -->\n"
    )
    monkeypatch.setattr(results, "PAGE", page)
    monkeypatch.setattr(results, "PICTURES", pictures)
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "a-b-small.md").write_text("## Title (a-b)\n\nno")
    (folder / "a-b-full.md").write_text("## Title (a-b)\n\n### Part\n\n| x |\n\n![t](f-full.png)\n")
    (folder / "f-full.png").write_bytes(b"picture")
    assert results.refresh(folder) == ["a-b"]
    text = page.read_text()
    assert text.startswith("Before.\n<!-- begin a-b -->\n`rankgrove reproduce a-b --scale full")
    assert "**Part**\n\n| x |\n\n![t](assets/results/f-full.png)\n<!-- end -->\nBetween." in text
    assert "old" not in text
    assert text.endswith("<!-- begin c -->\n<!-- end -->\n")
    assert (pictures / "f-full.png").read_bytes() == b"picture"
