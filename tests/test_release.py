"""The parts of a release agree: versions, requirements, recipe, image, workflows, smoke test."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
import zipfile

import pytest
import typer
from tools import release, smoke, wheel

import rankgrove as rg
from rankgrove.cli.main import app
from tests.conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
VERSIONED = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml", "papers/pyproject.toml")
VERSIONED += ("conda/recipe.yaml", "src/rankgrove/_version.py")


def read_yaml(path):
    return pytest.importorskip("yaml").safe_load((ROOT / path).read_text())


@pytest.fixture
def ready(tmp_path):
    """A copy of the files with versions, from which a release could be made."""
    for name in VERSIONED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("pyproject.toml", "conda/recipe.yaml"):
        change(tmp_path / name, release.PLACEHOLDER, "rankgrove.test")
    change(tmp_path / "CITATION.cff", "license: ", "date-released: 2026-12-01\nlicense: ")
    log = f"# Changelog\n\n## {rg.__version__} (2026-12-01)\n\n- A thing.\n\n## 0.1.0\n\n- First.\n"
    (tmp_path / "CHANGELOG.md").write_text(log)
    return tmp_path


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_nothing_but_changelog_and_addresses_may_stand_against_a_release():
    found = release.faults(ROOT, f"v{rg.__version__}")
    assert [one for one in found if "CHANGELOG" not in one and "placeholder" not in one] == []


def test_a_checkout_that_is_ready(ready):
    assert release.faults(ready, f"v{rg.__version__}") == []
    assert release.notes(ready, rg.__version__) == "- A thing."


@pytest.mark.parametrize(
    ("name", "old", "new", "fault"),
    [
        ("CITATION.cff", f"version: {rg.__version__}", "version: 0.9", "CITATION.cff: the version"),
        ("conda/recipe.yaml", f'"{rg.__version__}"', '"0.9"', "conda/recipe.yaml: the version"),
        ("papers/pyproject.toml", f"=={rg.__version__}", "==0.9", "papers/pyproject.toml"),
        ("CHANGELOG.md", "2026-12-01", "unreleased", "write the date instead"),
        ("CHANGELOG.md", "2026-12-01", "in December", "CHANGELOG.md has no date"),
        ("CITATION.cff", "2026-12-01", "2026-11-01", "no line 'date-released: 2026-12-01'"),
        ("CHANGELOG.md", f"## {rg.__version__}", "## 0.9", "CHANGELOG.md has no section on"),
        ("pyproject.toml", "rankgrove.test", "example.org", "URLs are placeholders: Changelog, "),
        ("conda/recipe.yaml", "rankgrove.test", "example.org", "a placeholder for the address"),
        ("src/rankgrove/_version.py", rg.__version__, "0.9.0", "the tag v"),
    ],
)  # fmt: skip
def test_what_stands_against_a_release(ready, name, old, new, fault):
    change(ready / name, old, new)
    assert fault in " ".join(release.faults(ready, f"v{rg.__version__}"))


def test_every_command_has_a_step_in_the_smoke_test():
    def names(command, words):
        inner = getattr(command, "commands", None)
        if inner is None:
            return [" ".join(words)]
        return [name for key, one in inner.items() for name in names(one, [*words, key])]

    commands = names(typer.main.get_command(app), [])
    assert {"train", "clicks fit", "doctor"} <= set(commands)
    assert smoke.missing_steps(commands) == [], "tools/smoke.py: a new command brings a step"
    assert smoke.missing_steps(["train", "tra", "clicks", "clicks fits"]) == ["tra", "clicks fits"]


def test_the_recipe_is_that_of_the_project():
    recipe = read_yaml("conda/recipe.yaml")
    assert recipe["context"]["version"] == rg.__version__
    assert recipe["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}
    assert recipe["build"]["noarch"] == "python"
    scripts = [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == scripts
    python = f"python {PROJECT['requires-python']}"
    needed = recipe["requirements"]
    spaced = [line.replace(">=", " >=") for line in PROJECT["dependencies"]]
    assert needed["run"] == [python, *spaced]
    (backend,) = PYPROJECT["build-system"]["requires"]
    assert needed["host"] == [python, "pip", backend.replace(">=", " >=")]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (PROJECT["description"], PROJECT["license"])


def test_conda_reads_the_recipe():
    """By rattler-build itself: ``pip install py-rattler-build``."""
    rattler_build = pytest.importorskip("rattler_build", reason="py-rattler-build is absent")
    (variant,) = rattler_build.Stage0Recipe.from_file(str(ROOT / "conda" / "recipe.yaml")).render(
        rattler_build.VariantConfig()
    )
    recipe = variant.recipe.to_dict()
    assert recipe["package"] == {"name": "rankgrove", "version": rg.__version__}


def test_the_page_shows_the_dockerfile():
    page = (ROOT / "docs" / "howto" / "images.md").read_text()
    (shown,) = re.findall(r"^```dockerfile\n(.*?)^```$", page, re.S | re.M)
    assert shown == (ROOT / "Dockerfile").read_text()


def test_the_image_gets_the_files_that_it_copies():
    kept = [
        line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[0] == "!"
    ]
    text = (ROOT / "Dockerfile").read_text()
    assert re.findall(r"^COPY (?!--from)(\S+) ", text, re.M) == kept
    assert len(re.findall(r"^FROM ", text, re.M)) == 2


def test_the_page_has_the_versions_of_the_project():
    page = (ROOT / "docs" / "releases.md").read_text()
    table = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \| ([\d.]+|-) \| (.+) \|$", page, re.M)
    tested = PYPROJECT["tool"]["rankgrove"]["tested"]
    users = {"docs", "test", "lint", "dev"}
    lines = dict.fromkeys(PROJECT["dependencies"], "everything")
    for extra, needed in PROJECT["optional-dependencies"].items():
        for line in needed if extra not in users else ():
            lines.setdefault(line, f"`rankgrove[{extra}]`")
    rows = [(*line.split(">="), reason) for line, reason in lines.items()]
    expected = [(name, least, tested.get(name, "-"), reason) for name, least, reason in rows]
    assert table == expected
    untested = {"torch", "mlflow-skinny", "python-terrier"}
    assert set(tested) == {name for name, *_ in rows} - untested


def test_workflows_run_what_the_makefile_has():
    tests, releases = (read_yaml(f".github/workflows/{name}.yml") for name in ("ci", "release"))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    text = str(tests) + str(releases)
    assert set(re.findall(r"make ([a-z-]+)", text)) <= targets
    assert {"docs", "wheel"} <= set(re.findall(r"make ([a-z-]+)", text))
    pythons = {one["python"] for one in tests["jobs"]["tests"]["strategy"]["matrix"]["include"]}
    stem = "Programming Language :: Python :: "
    listed = {line.removeprefix(stem) for line in PROJECT["classifiers"] if line.startswith(stem)}
    assert pythons == {name for name in listed if re.fullmatch(r"3\.\d+", name)}
    # nothing is uploaded before the tests and the wheel have passed; no passwords are stored
    jobs = releases["jobs"]
    assert jobs["build"]["needs"] == "tests"
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text


def test_the_description_has_addresses_in_place_of_paths():
    pytest.importorskip("hatchling")
    from tools.readme import with_addresses

    text = "![a\npicture](docs/a.svg) [page](docs/b.md#c), [here](#d), [there](https://e.org)"
    assert with_addresses(text, "https://f.org/g", "1.2.3") == (
        "![a\npicture](https://f.org/g/raw/v1.2.3/docs/a.svg) "
        "[page](https://f.org/g/blob/v1.2.3/docs/b.md#c), [here](#d), [there](https://e.org)"
    )


def test_the_builds_differ_where_a_byte_does(tmp_path):
    for folder, blob in (("one", b"a"), ("other", b"b")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same").write_bytes(b"same")
        (tmp_path / folder / "x").write_bytes(blob)
    (tmp_path / "one" / "more").touch()
    lists = [sorted((tmp_path / folder).iterdir()) for folder in ("one", "other")]
    assert wheel.differences(*lists) == ["more", "x"]
    assert wheel.differences(lists[0], lists[0]) == []


@pytest.mark.slow
def test_two_builds_have_the_same_bytes(tmp_path):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling, which builds the package, is absent")
    sizes = {path.suffix: path.stat().st_size for path in wheel.build_twice(tmp_path, "1700000000")}
    assert sizes.keys() == {".whl", ".gz"}
    assert sizes[".whl"] < 3e6
    assert sizes[".gz"] < 2e7
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as archive:
        (told,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        description = archive.read(told).decode()
    pages = "](docs/", "](CHANGELOG.md"
    assert all(page in (ROOT / "README.md").read_text() for page in pages)
    assert not any(page in description for page in pages)
