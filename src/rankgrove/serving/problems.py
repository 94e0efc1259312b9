"""What is wrong with a request, as the client is told."""

from __future__ import annotations

from typing import Any


class Problem(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    status : of HTTP
    message : what is wrong, with the value
    rule, remedy : what holds, and what to do
    path : the place of the value in the request, as in ``documents[3].features[0]``
    """

    def __init__(
        self, status: int, message: str, *, rule: str, remedy: str, path: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.content: dict[str, Any] = {"status": status, "message": message}
        self.content |= {"rule": rule, "remedy": remedy}
        if path is not None:
            self.content["path"] = path


def shown(value: Any) -> str:
    """Return a value as text of a message, in JSON's words, cut short."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = repr(value)
    except ValueError:  # a whole number of too many digits
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."
