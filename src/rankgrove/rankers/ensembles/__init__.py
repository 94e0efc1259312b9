"""Rankers made of other rankers: bags, combinations, stacks, prepared features."""
