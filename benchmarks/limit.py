"""The physical limit of histogram-based training on this machine: a C program, and memory.

Counting histograms is most of the work of a tree. Here a C program (-O3, for this processor, with
OpenMP) adds one 64-bit number per row and feature to the bins of the rows that a tree has to count:
all rows for the root, and the smaller child of every split. It does nothing else: no gradients, no
partition, no search. The second limit is memory alone: the bytes of these rows, read once each.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankgrove as rg

SOURCE = r"""
#include <stdint.h>
#include <string.h>
#include <omp.h>
#define AT_ONCE 512
#define STRIDE 272
#define PAD 24

void count(const uint64_t *words, long n_words, const int64_t *sums, const int32_t *rows, long n,
           int64_t *hists, int threads) {
  #pragma omp parallel num_threads(threads)
  {
    long part = omp_get_thread_num(), size = (n + threads - 1) / threads;
    long low = part * size, high = low + size < n ? low + size : n;
    int64_t *hist = hists + part * n_words * 8 * STRIDE;
    static __thread uint64_t buffer[80 * (AT_ONCE + PAD)];
    static __thread int64_t values[AT_ONCE];
    memset(hist, 0, n_words * 8 * STRIDE * sizeof(int64_t));
    for (long start = low; start < high; start += AT_ONCE) {
      long m = high - start < AT_ONCE ? high - start : AT_ONCE;
      for (long i = 0; i < m; i++) {
        const uint64_t *row = words + rows[start + i] * n_words;
        long next = start + i + 32 < high ? start + i + 32 : high - 1;
        for (long b = 0; b < n_words; b += 8) __builtin_prefetch(words + rows[next] * n_words + b);
        values[i] = sums[rows[start + i]];
        for (long b = 0; b < n_words; b++) buffer[b * (AT_ONCE + PAD) + i] = row[b];
      }
      for (long b = 0; b < n_words; b++) {
        int64_t *h = hist + b * 8 * STRIDE;
        const uint64_t *w = buffer + b * (AT_ONCE + PAD);
        for (long i = 0; i < m; i++) {
          uint64_t x = w[i];
          int64_t v = values[i];
          h[x & 255] += v;
          h[((x >> 8) & 255) + STRIDE] += v;
          h[((x >> 16) & 255) + 2 * STRIDE] += v;
          h[((x >> 24) & 255) + 3 * STRIDE] += v;
          h[((x >> 32) & 255) + 4 * STRIDE] += v;
          h[((x >> 40) & 255) + 5 * STRIDE] += v;
          h[((x >> 48) & 255) + 6 * STRIDE] += v;
          h[(x >> 56) + 7 * STRIDE] += v;
        }
      }
    }
  }
}

uint64_t read_all(const uint64_t *words, long n, int threads) {
  uint64_t total = 0;
  #pragma omp parallel for num_threads(threads) reduction(^ : total)
  for (long i = 0; i < n; i++) total ^= words[i];
  return total;
}
"""


class Limit(NamedTuple):
    """Seconds per tree that cannot be avoided: adding up in C, and reading the rows."""

    adding: float
    reading: float


def limit_of(
    model: rg.LambdaMART, train: rg.QueryDataset, threads: int, first: int = 0
) -> Limit | None:
    """Return the limit for a model's trees from number `first` on; None without a C compiler."""
    library = _library()
    if library is None:
        return None
    words = np.ascontiguousarray(model.bins(train).words)
    n, n_words = words.shape
    rng = np.random.default_rng(0)
    sums = rng.integers(0, 1 << 40, n)
    hists = np.empty((threads, n_words, 8 * 272), np.int64)
    all_rows = np.arange(n, dtype=np.int32)
    tenth = np.flatnonzero(rng.random(n) < 0.1).astype(np.int32)  # rows of a leaf

    def count(rows: np.ndarray) -> float:
        arguments = (_at(words), n_words, _at(sums), _at(rows), rows.size, _at(hists), threads)
        return _best(lambda: library.count(*arguments)) / rows.size

    small = _small_children(model, first) / (model.ensemble_.n_trees - first)
    adding = n * count(all_rows) + small * count(tenth)
    reading = _best(lambda: library.read_all(_at(words), words.size, threads)) / n
    return Limit(adding, reading * (n + small))


def _small_children(model: rg.LambdaMART, first: int) -> float:
    """Return the number of rows in the smaller children of all splits of trees from `first` on."""
    total = 0.0
    for t in range(first, model.ensemble_.n_trees):
        tree = model.ensemble_.tree(t)
        sides = [np.where(side < 0, tree.n_nodes + ~side, side) for side in (tree.left, tree.right)]
        total += float(np.minimum(tree.count[sides[0]], tree.count[sides[1]]).sum())
    return total


def _library() -> Any:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    folder = Path(tempfile.mkdtemp())
    (folder / "limit.c").write_text(SOURCE)
    command = [compiler, "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
    subprocess.run([*command, "limit.c", "-o", "limit.so"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "limit.so"))
    library.read_all.restype = ctypes.c_uint64
    pointer, long = ctypes.c_void_p, ctypes.c_long
    library.count.argtypes = [pointer, long, pointer, pointer, long, pointer, ctypes.c_int]
    library.read_all.argtypes = [pointer, long, ctypes.c_int]
    return library


def _at(array: np.ndarray) -> int:
    return array.ctypes.data


def _best(work: Callable[[], object], rounds: int = 5) -> float:
    best = np.inf
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)
