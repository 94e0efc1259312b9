"""The site: pages, links and pictures; built whole, and every public name is in it."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools import explanations, layers, pages, reference

import rankgrove as rg
from tests.conftest import ROOT
from tests.documentation import PAGES, name_of

OTHERS = [
    ROOT / name
    for name in ("benchmarks/README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
]


def text_of(page):
    """Return a page without its examples, in which brackets are code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M)


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.M)
    plain = [re.sub(r"[`*]", "", heading).lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_links_lead_somewhere(page):
    for text, target, place in pages.LINK.findall(text_of(page)):
        if target.startswith(("http:", "https:")):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.is_file(), f"[{text}]({target})"
        assert path.is_relative_to(ROOT)
        assert not place or place[1:] in anchors(path), f"[{text}]({target}{place})"


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_names_in_the_text_exist(page):
    options = {
        option
        for _, command, context in reference.all_commands()
        for param in command.get_params(context)
        for option in (*param.opts, *param.secondary_opts)
    }
    for path in set(re.findall(r"\brg\.(\w+(?:\.[a-z]\w+)?)", page.read_text())):
        found = rg
        for name in path.split("."):
            assert hasattr(found, name), f"rg.{path}"
            found = getattr(found, name)
    for command in re.findall(r"`rankgrove ([^`]+)`", text_of(page)):
        unknown = set(re.findall(r"(?<!\S)--[a-z][a-z-]+", command)) - options - {"--version"}
        assert not unknown, f"rankgrove {command}"


def test_every_page_is_in_the_navigation_once():
    listed = [page for part in pages.NAVIGATION.values() for page in part]
    written = {pages.site_path(page.relative_to(ROOT).as_posix()) for page in [*PAGES, *OTHERS]}
    made = {"api/index.md", *reference.reference_pages()}
    assert sorted(f"{page}.md" for page in listed) == sorted(written | made), (
        "tools/pages.py: NAVIGATION has all pages of docs/"
    )


def test_every_page_begins_with_what_its_reader_can_do():
    every = {name_of(page): page.read_text() for page in PAGES if page.name != "README.md"}
    for name, text in (every | reference.reference_pages()).items():
        start = " ".join(text.split("\n", 1)[1].split("\n## ")[0].split()[:120])
        assert re.search(r"\bafter this (page|notebook)\b", start, re.I), name


def test_pictures_are_described():
    shown = set()
    for page in PAGES:
        for description, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text_of(page)):
            assert len(description) >= 10, f"{name_of(page)}: {target}"
            assert (page.parent / target).is_file(), f"{name_of(page)}: {target}"
            shown.add((page.parent / target).resolve())
    drawn = {explanations.FOLDER / f"{name}.png" for name in explanations.PICTURES}
    assert drawn == set(explanations.FOLDER.iterdir())
    assert drawn <= shown


def test_the_generated_pages_have_every_command_option_and_parameter():
    text = reference.command_page()
    for path, command, context in reference.all_commands():
        section = text.split(f"\n## {path}\n")[1].split("\n## ")[0]
        seen = [param for param in command.get_params(context) if not param.hidden]
        assert section.count("\n| `") == len(seen) - 1, path  # all but --help
        for option in (param.opts[0] for param in seen if param.opts[0][0] == "-"):
            assert option == "--help" or option in section, path
    text = reference.parameter_page()
    for name, ranker in reference.rankers_with_parameters().items():
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(ranker.parameters), name
    assert "| `n_leaves` | `31` | a whole number of at least 2 |" in text
    for page in reference.reference_pages().values():
        for line in page.splitlines():
            if line.startswith("| "):  # cells do not break their row
                assert len(re.findall(r"(?<!\\)\|", line)) in (3, 5), line


def test_links_of_the_site_lead_to_its_pages():
    every = pages.all_pages()
    for name, text in every.items():
        plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        for _, target, _ in pages.LINK.findall(plain):
            if target and ":" not in target:
                path = (Path("/") / name).parent / target
                inside = Path(*path.parts[1:]).as_posix()
                inside = str(Path("/" + inside).resolve().relative_to("/"))
                assert inside in every or (ROOT / "docs" / inside).is_file(), f"{name}: {target}"


def test_the_reference_has_all_names():
    groups = pages.names_by_group()
    found = [name for names in groups.values() for name in names]
    assert sorted(found) == sorted(name for name in rg.__all__ if not name.startswith("__"))
    every = pages.api_pages()
    for group, names in groups.items():
        text = every[f"api/{pages.page_of(group)}.md"]
        for name in names:
            assert f"## rg.{name}\n" in text
            assert f"`rg.{name} <" in every["api/index.md"]


def test_docstrings_of_public_names_are_whole():
    for name in rg.__all__:
        value = getattr(rg, name)
        if not (inspect.isfunction(value) or inspect.isclass(value)):
            continue
        text = inspect.getdoc(value)
        taken = inspect.signature(value.__init__ if inspect.isclass(value) else value).parameters
        if "Parameters\n-----" in text:
            section = text.split("Parameters\n-----")[1].split("\n---")[0]
            for one in taken:
                if not one.startswith("_") and one not in ("self", "args", "kwargs", "given"):
                    assert re.search(rf"\b{one}\b", section), f"{name}: {one} is not described"


def test_the_picture_of_the_layers_is_the_contract():
    assert layers.PICTURE.read_text() == layers.drawn(), "run: python -m tools.layers"
    text = (ROOT / "docs" / "design.md").read_text().split("## Layers")[1]
    picture = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)[0]
    rows = [re.split(r" {2,}", line)[0] for line in picture.splitlines() if line[0] != " "]
    assert [sorted(re.findall(r"\w+", row)) for row in rows] == [
        sorted(row) for row in layers.layers() if row
    ]


def test_names_of_layers_fit_into_their_boxes():
    boxes = re.findall(r'<rect [^>]*width="([\d.]+)".*?>(\w+)</text>', layers.drawn())
    assert len(boxes) == sum(map(len, layers.layers()))
    for width, name in boxes:
        assert float(width) >= 8.43 * len(name), name


def test_the_tree_of_files_is_there():
    text = (ROOT / "docs" / "design.md").read_text().split("## Layers")[1]
    tree = re.findall(r"^```\n(.*?)^```", text, re.S | re.M)[1]
    folder, named, files = ROOT / "src" / "rankgrove", [], set()
    for line in tree.splitlines()[1:]:
        start = re.match(r"( *)([\w./]+)", line)
        if len(start[1]) == 2 and start[2].endswith("/"):
            folder = ROOT / "src" / "rankgrove" / start[2]
            named.append(folder.name)
        elif len(start[1]) == 2:
            folder = ROOT / "src" / "rankgrove"
        elif start[1] == "":
            folder = ROOT / start[2]
        assert folder.is_dir()
        for pattern in re.findall(r"[\w*]+\.py", line):
            assert any(folder.glob(pattern)), f"{folder.name}/{pattern}"
            files |= set(folder.glob(pattern))
    modules = {path for path in (ROOT / "src" / "rankgrove").rglob("*.py") if path.name[0] != "_"}
    assert modules <= files, f"not in the tree: {sorted(map(str, modules - files))}"
    packages = {path.parent.name for path in (ROOT / "src" / "rankgrove").glob("*/__init__.py")}
    assert packages <= set(named)


@pytest.mark.slow
def test_the_site_is_built(tmp_path):
    pytest.importorskip("sphinx")
    picture = layers.PICTURE.read_text()
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert layers.PICTURE.read_text() == picture
    start = (tmp_path / "site" / "index.html").read_text()
    for page in ("tutorial", "howto/cluster", "papers", "api/index"):
        assert f'href="{page}.html"' in start
    folder = tmp_path / "site" / "notebooks"
    notebook = (folder / "report.html").read_text()
    assert 'src="report-report.html"' in notebook
    assert (folder / "report-report.html").is_file()
    assert len(re.findall(r'<img alt="[^"]{30,}" src="\.\./_images/report-', notebook)) == 7
    assert all((folder / f"{page.stem}.ipynb").is_file() for page in folder.glob("[!r]*.html"))
    reference = (tmp_path / "site" / "api" / "rankers.html").read_text()
    assert 'id="rankgrove.LambdaMART"' in reference
    assert "maximum number of trees" in reference
    foreign = re.compile(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//[^"]*"')
    for path in (tmp_path / "site").rglob("*.html"):
        assert not foreign.findall(path.read_text()), path.name  # nothing comes from elsewhere
