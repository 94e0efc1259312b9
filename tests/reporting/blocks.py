"""The data block of a page."""

from __future__ import annotations

import json
import re


def block(html):
    """Return the page's data."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(text)
