"""The errors that clients receive."""

from __future__ import annotations


class Problem(Exception):
    """A request that cannot be answered.

    Parameters
    ----------
    status : the HTTP status
    message : the mistake, with the value
    rule, remedy : the rule that it breaks, and how to fix it
    path : the place of the value in the request, such as ``documents[3].features[0]``
    """

    def __init__(
        self, status: int, message: str, *, rule: str, remedy: str, path: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.content: dict[str, str | int] = {"status": status, "message": message}
        self.content |= {"rule": rule, "remedy": remedy}
        if path is not None:
            self.content["path"] = path


def shown(value: object) -> str:
    """Return a value as text for a message, as JSON writes it, shortened."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python converts
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."
