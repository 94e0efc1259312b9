"""Run all benchmarks, one after the other: ``make bench``."""

from __future__ import annotations

import runpy
import sys

SCRIPTS = (
    *("reading", "measuring", "combining", "growth", "training", "scoring", "categories_scoring"),
    *("nets", "svm", "linear", "classical", "trada", "explaining", "serving", "click_models"),
)

for name in SCRIPTS:
    print(f"== {name} ==", flush=True)
    sys.argv = [name]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
