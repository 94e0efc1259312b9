"""The formats that models are written in, and the endings of their files.

The command line reads this table before NumPy is imported; `write.py` has the functions.
"""

from __future__ import annotations

# format -> ending of its files; "" if other formats have the same
ENDING_OF = {
    "lightgbm": ".txt",
    "xgboost": "",
    "ranklib": ".xml",
    "solr": "",
    "elasticsearch": "",
    "opensearch": "",
    "elasticsearch-native": "",
    "vespa": "",
    "onnx": ".onnx",
    "python": ".py",
    "c": ".c",
    "rankgrove": ".rg",
}
FORMAT_OF = {ending: name for name, ending in ENDING_OF.items() if ending}
