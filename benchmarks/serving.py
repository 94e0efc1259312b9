"""Latency and throughput of ``rankgrove serve`` on 127.0.0.1, and where the time goes.

    python -m benchmarks.serving [--requests 2000] [--clients 1 2 4] [--documents 100]

A model of 500 trees with 31 leaves on 136 features answers queries of 100 documents. Every client
is a thread with its own connection, which sends the next request when it has received the answer.
The clients run in this process, the service in another.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import rankgrove as rg
from benchmarks.timing import best_times
from rankgrove.serving import coding
from rankgrove.serving.registry import Registry


@contextlib.contextmanager
def service(model: Path) -> Iterator[tuple[int, int]]:
    """Start the service, yield its process id and port, and stop it."""
    command = [Path(sys.executable).with_name("rankgrove"), "serve", model, "--port", "0"]
    with subprocess.Popen(
        [*map(str, command), "--quiet"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.search(r":(\d+)\s*$", line)
            if match is None:
                raise SystemExit(f"the service did not start: {line}")
            yield process.pid, int(match[1])
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def processor_seconds(process: int) -> float:
    """Return the processor time of a process so far; 0 if the system does not provide it."""
    path = Path(f"/proc/{process}/stat")
    if not path.exists():
        return 0.0
    ticks = path.read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def load(port: int, bodies: list[bytes], n_requests: int, n_clients: int) -> np.ndarray:
    """Send requests from several clients; return the seconds of each request, the total last."""
    seconds: list[float] = []
    left = iter(range(n_requests))

    def client() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for k in left:
            began = time.perf_counter()
            connection.request("POST", "/rank", bodies[k % len(bodies)])
            answer = connection.getresponse()
            content = answer.read()
            seconds.append(time.perf_counter() - began)
            if answer.status != 200:
                raise SystemExit(content.decode())
        connection.close()

    threads = [threading.Thread(target=client) for _ in range(n_clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.array([*seconds, time.perf_counter() - began])


def parts(model: Path, body: bytes, rounds: int) -> None:
    """Print the time of every part of a request, without HTTP."""
    served = Registry({"m": model}, 10_000).get(None)
    request = served.form.read(coding.decode(body))
    contenders = {
        "reading JSON by orjson": lambda: coding.decode(body),
        "... by json": lambda: json.loads(body),
        "checking, making the matrix": lambda: served.form.read(decoded),
        "scoring": lambda: served.scores(request.features),
        "ranking and writing": lambda: coding.encode(served.rank(request)),
    }
    decoded = coding.decode(body)
    for name, seconds in best_times(contenders, rounds).items():
        print(f"  {name:<28} {1e3 * seconds:7.3f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    data = rg.make_web(300, n_docs=args.documents, n_features=args.features, seed=1)
    model = rg.LambdaMART(n_trees=args.trees, n_leaves=31).fit(data)
    rng = np.random.default_rng(1)
    bodies = []
    for _ in range(20):
        rows = data.X[rng.integers(0, data.n_rows, args.documents)]
        docs = [{"id": f"d{i}", "features": row} for i, row in enumerate(rows.tolist())]
        bodies.append(json.dumps({"documents": docs, "top_k": 10}).encode())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.rg"
        model.save(path)
        print(
            f"{args.documents} documents x {args.features} features, {args.trees} trees, "
            f"{len(bodies[0]) / 1000:.0f} kB per request"
        )
        parts(path, bodies[0], 200)
        with service(path) as (process, port):
            load(port, bodies, 100, 2)
            used = processor_seconds(process)
            best = dict.fromkeys(args.clients, (np.inf, np.inf, 0.0))
            for _ in range(args.rounds):
                for n in args.clients:
                    times = load(port, bodies, args.requests, n)
                    p50, p99 = np.quantile(times[:-1], [0.5, 0.99])
                    rate = args.requests / times[-1]
                    previous = best[n]
                    best[n] = min(previous[0], p50), min(previous[1], p99), max(previous[2], rate)
            used = processor_seconds(process) - used
    each = used / (args.rounds * args.requests * len(args.clients))
    print(f"  {1e3 * each:.2f} ms of processor time per request")
    for n, (p50, p99, rate) in best.items():
        print(
            f"  {n} clients: p50 {1e3 * p50:6.2f} ms, p99 {1e3 * p99:6.2f} ms, "
            f"{rate:7.0f} requests per second, {rate * args.documents:,.0f} documents per second"
        )


if __name__ == "__main__":
    main()
