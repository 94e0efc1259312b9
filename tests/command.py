"""Running the command line: in a process of its own as a user does, or quicker in this one."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from rankgrove.cli import main

COMMAND = Path(sys.executable).with_name("rankgrove")


def run(*words, cwd=None, status=0):
    """Run a command; return what it prints, and what it complains of."""
    done = subprocess.run(
        [COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=600
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


def run_here(*words, cwd=".", status=0):
    """Do the same without starting a process."""
    out, complaints = io.StringIO(), io.StringIO()
    code = 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(complaints),
        mock.patch.object(sys, "argv", ["rankgrove", *map(str, words)]),
    ):
        try:
            main.run()
        except SystemExit as end:
            code = end.code or 0
    assert code == status, complaints.getvalue()
    return out.getvalue(), complaints.getvalue()
