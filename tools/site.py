"""Build the site: ``python -m tools.site`` writes build/docs/site, which needs no network."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tools import layers, notebooks
from tools.pages import ROOT, all_pages

SECTIONS = ("Parameters", "Attributes", "Other Parameters")
ITEM = re.compile(r"^([\w*][\w, .*]*?) : (.*)$")
GREEN = {"light": "#0b6e4f", "dark": "#5ec9a0"}
SETTINGS = {
    "project": "rankgrove",
    "html_title": "rankgrove",
    "extensions": ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"],
    "myst_heading_anchors": 4,
    "html_theme": "furo",
    "html_theme_options": {
        f"{mode}_css_variables": {"color-brand-primary": green, "color-brand-content": green}
        for mode, green in GREEN.items()
    },
    "html_static_path": ["assets"],
    "html_css_files": ["site.css"],
    "html_extra_path": ["extra"],  # files that go to the site as they are
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "html_copy_source": False,
    "html_show_search_summary": False,  # summaries are fetched, which browsers refuse for files
    "highlight_language": "text",
    "autodoc_member_order": "bysource",
    "autodoc_typehints": "none",
    "autodoc_class_signature": "mixed",
    "add_module_names": False,
    "napoleon_custom_sections": [("Attributes", "params_style")],
    "napoleon_use_rtype": False,
    "python_maximum_signature_line_length": 88,
    "toc_object_entries": False,
    "suppress_warnings": ["myst.header"],
}


def with_descriptions(lines: list[str]) -> list[str]:
    """Return a docstring with descriptions below the names they belong to.

    Rankgrove's docstrings have ``name : description``, with the type in the signature only;
    numpydoc would read the text after the colon as the type.
    """
    rewritten: list[str] = []
    inside, names = False, ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if re.fullmatch(r"-{3,}", below):
            inside = line in SECTIONS
        if inside and re.fullmatch(r"[\w*][\w, *]*,", line):  # names that continue on the next line
            names += f"{line} "
            continue
        item = ITEM.match(names + line) if inside else None
        rewritten += [item[1], f"    {without_markup(item[2])}"] if item else [without_markup(line)]
        names = ""
    return rewritten


def without_markup(line: str) -> str:
    """Return a line with |bars| and trailing_ underscores escaped; examples stay unchanged."""
    if line.startswith((">>>", "...")):
        return line
    parts = re.split(r"(``.*?``|`.*?`)", line)
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"\b([a-z]\w*_)(?!\w)", r"``\1``", parts[i]).replace("|", r"\|")
    return "".join(parts)


def rewrite(
    _app: Any, _what: Any, _name: Any, _value: Any, _options: Any, lines: list[str]
) -> None:
    """Rewrite a docstring before it is read."""
    lines[:] = with_descriptions(lines)


def signature_of(_app: Any, what: str, _name: Any, value: Any, *_: Any) -> tuple[str, str] | None:
    """Return the arguments of a class's ``__init__``, even if its metaclass has others."""
    if what != "class" or "__init__" not in vars(value):
        return None
    signature = inspect.signature(value.__init__)
    parameters = [
        param.replace(annotation=param.empty) for param in list(signature.parameters.values())[1:]
    ]
    return str(inspect.Signature(parameters)), ""


def leave_out(_app: Any, _what: Any, name: str, value: Any, *_: Any) -> bool | None:
    """Leave out the methods that scikit-learn adds to every estimator."""
    theirs = str(getattr(value, "__module__", "")).startswith("sklearn")
    return True if theirs or re.fullmatch(r"set_\w+_request", name) else None


def with_outputs(path: Path, text: str, extra: Path) -> str:
    """Run a notebook; write its pictures and other files, and return its page."""
    cells = notebooks.run(text, path.stem)
    page, pictures, others = notebooks.site_page(cells, path.stem)
    extra.mkdir(parents=True, exist_ok=True)
    for name, data in pictures.items():
        (path.parent / name).write_bytes(data)
    for name, data in others.items():
        (extra / name).write_bytes(data)
    return page


def write_sources(folder: Path) -> None:
    """Write every page of the site, and the files that they use."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in all_pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.name == notebooks.FOLDER.name:
            text = with_outputs(path, text, folder / "extra" / path.parent.name)
        path.write_text(text)
    shutil.copytree(ROOT / "docs" / "assets", folder / "assets")


def build(target: Path) -> None:
    """Build the site into a folder; every warning, such as a broken link, is an error."""
    source, doctrees = target.parent / "source", target.parent / "doctrees"
    write_sources(source)
    shutil.rmtree(target, ignore_errors=True)
    with patch_docutils(), docutils_namespace():
        app = Sphinx(
            source,
            None,
            target,
            doctrees,
            "html",
            confoverrides=SETTINGS,
            status=None,
            warning=sys.stderr,
            freshenv=True,
            warningiserror=True,
        )
        app.connect("autodoc-process-docstring", rewrite, priority=100)
        app.connect("autodoc-process-signature", signature_of)
        app.connect("autodoc-skip-member", leave_out)
        app.build()
    if app.statuscode:
        raise SystemExit("The site has errors: see above.")


if __name__ == "__main__":
    layers.PICTURE.write_text(layers.drawn())
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "build/docs/site").resolve()
    build(target)
    print(f"open {target}/index.html")
