"""Rules for sets of categories as a parameter of rankers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from rankgrove.growth.splitting import CategoryRules
from rankgrove.validation import nearest, refuse

NAMES = tuple(field.name for field in fields(CategoryRules))


def category_rules(name: str, owner: str, value: object) -> None:
    """Check a dict of rules for sets of categories."""
    if not isinstance(value, Mapping):
        refuse(name, owner, "a dict of rules, such as {'min_rows': 20}", value)
    for rule in value:
        if rule not in NAMES:
            known = f"made of the rules {', '.join(NAMES)}{nearest(str(rule), NAMES)}"
            refuse(name, owner, known, rule)
    rules_of(value)


def rules_of(value: Mapping[str, float] | None) -> CategoryRules:
    """Return the rules of a ranker's parameter; None: the defaults."""
    return CategoryRules(**dict(value or {}))  # type: ignore[arg-type]
