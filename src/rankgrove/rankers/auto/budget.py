"""How long a search may go on: a time limit, or a number of fits."""

from __future__ import annotations

import time

FINISHING = 0.03  # share of the time that is kept for the last choice


class Budget:
    """A limit of a search, by time or by number of fits.

    Parameters
    ----------
    minutes, n_fits : the limit; one of the two is None. With a number of fits, nothing depends on
        the clock
    """

    def __init__(self, minutes: float | None, n_fits: int | None) -> None:
        self.started = time.monotonic()
        self.n_fits = n_fits
        self.seconds = None if minutes is None else 60.0 * minutes
        self.fits = 0
        self._reserved: dict[str, float] = {}

    @property
    def elapsed(self) -> float:
        """Seconds since the search started."""
        return time.monotonic() - self.started

    @property
    def deadline(self) -> float | None:
        """The time at which training must end, of ``time.monotonic``; None: no limit."""
        if self.seconds is None:
            return None
        return self.started + self.seconds - self.finishing

    def reserve(self, seconds: float, purpose: str = "choice") -> None:
        """Keep this time for something that comes after the fits."""
        self._reserved[purpose] = seconds

    @property
    def finishing(self) -> float:
        """Seconds that are kept for what comes after the fits."""
        least = 0.0 if self.seconds is None else FINISHING * self.seconds
        return max(least, sum(self._reserved.values()))

    @property
    def used(self) -> float:
        """The share of the limit that is used up."""
        if self.seconds is None:
            assert self.n_fits is not None
            return self.fits / self.n_fits
        return self.elapsed / max(1e-9, self.seconds - self.finishing)

    @property
    def is_over(self) -> bool:
        """Whether the limit is reached."""
        return self.used >= 1.0

    def allows(self, n_fits: int, seconds: float) -> bool:
        """Return whether some more fits, which take about this time, are within the limit."""
        if self.seconds is None:
            assert self.n_fits is not None
            return self.fits + n_fits <= self.n_fits
        return self.elapsed + seconds <= self.seconds - self.finishing
