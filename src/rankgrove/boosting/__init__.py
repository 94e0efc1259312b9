"""Boosting: the loop, and the parts it is put together from."""
