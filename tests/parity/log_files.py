"""Logs as search engines write them, for tests."""

from __future__ import annotations

import json

import numpy as np


def number(value):
    """Return a float32 as Java prints it: with as few digits as tell it."""
    return float(str(np.float32(value)))


def elasticsearch(names, values, query, scores, entry="main"):
    """Return responses with ``_ltrlog``, one JSON line per query."""
    lines = []
    for one in dict.fromkeys(query):
        hits = []
        for row in np.flatnonzero(np.asarray(query) == one):
            features = [
                {"name": name} if np.isnan(value) else {"name": name, "value": number(value)}
                for name, value in zip(names, values[row], strict=True)
            ]
            hits.append(
                {
                    "_index": "docs",
                    "_id": f"d{row}",
                    "_score": number(scores[row]),
                    "fields": {"_ltrlog": [{entry: features}]},
                }
            )
        total = {"value": len(hits), "relation": "eq"}
        response = {"took": 3, "hits": {"total": total, "hits": hits}}
        lines.append(json.dumps({"query_id": str(one), "response": response}))
    return "\n".join(lines) + "\n"


def solr(names, values, query, scores, sparse=False):
    """Return a list of responses with ``[features]``."""
    responses = []
    for one in dict.fromkeys(query):
        docs = []
        for row in np.flatnonzero(np.asarray(query) == one):
            pairs = [
                f"{name}={number(value)}"
                for name, value in zip(names, values[row], strict=True)
                if not (sparse and value == 0)
            ]
            docs.append(
                {"id": f"d{row}", "score": number(scores[row]), "[features]": ",".join(pairs)}
            )
        params = {"q": str(one), "fl": "id,score,[features]"}
        header = {"status": 0, "params": params}
        responses.append({"responseHeader": header, "response": {"numFound": 9, "docs": docs}})
    return json.dumps(responses, indent=1)


def vespa(names, values, query, scores):
    """Return responses with summary features, pretty-printed one after the other."""
    texts = []
    for one in dict.fromkeys(query):
        children = []
        for row in np.flatnonzero(np.asarray(query) == one):
            features = dict(zip(names, values[row].tolist(), strict=True))
            features = {name: None if np.isnan(v) else v for name, v in features.items()}
            features |= {"vespa.summaryFeatures.cached": 0.0, "near": {"type": "tensor(x{})"}}
            fields = {"documentid": f"id:a:b::d{row}", "summaryfeatures": features}
            child = {"id": "index:b/0/1", "relevance": float(scores[row]), "fields": fields}
            children.append(child)
        root = {"id": "toplevel", "relevance": 1.0, "fields": {"totalCount": 9}}
        grouped = [{"id": "group:root", "relevance": 1.0, "children": children}]
        texts.append(json.dumps({"qid": str(one), "root": root | {"children": grouped}}, indent=2))
    return "\n".join(texts)
