# mypy: ignore-errors
"""Codes for ids, the order of impressions, and impressions that are there twice."""

from __future__ import annotations

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit

_STEP = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _larger(table, hashes, n):
    """Return a table of twice the size with the codes 0 to n - 1 in it."""
    out = np.full(2 * table.size, np.int32(-1), np.int32)
    mask = np.uint64(out.size - 1)
    for code in range(n):
        slot = hashes[code] & mask
        while out[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        out[slot] = code
    return out


@njit(cache=True, nogil=True)
def number_codes(keys, codes):
    """Fill codes with the number of every key, by first appearance; return the first rows."""
    table = np.full(4096, np.int32(-1), np.int32)
    hashes = np.empty(2048, np.uint64)
    known = np.empty(2048, np.int64)
    first = np.empty(2048, np.int64)
    n = 0
    for i in range(keys.size):
        key = keys[i]
        hashed = mix(np.uint64(key) + _STEP)
        mask = np.uint64(table.size - 1)
        slot = hashed & mask
        while table[slot] >= 0 and known[table[slot]] != key:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = n
            hashes[n], known[n], first[n] = hashed, key, i
            codes[i] = n
            n += 1
            if n == known.size:
                table = _larger(table, hashes, n)
                hashes = np.concatenate((hashes, np.empty(n, np.uint64)))
                known = np.concatenate((known, np.empty(n, np.int64)))
                first = np.concatenate((first, np.empty(n, np.int64)))
        else:
            codes[i] = table[slot]
    return first[:n].copy()


@njit(cache=True, nogil=True)
def text_codes(letters, codes):
    """Like the kernel for numbers, but a key is a row of letters."""
    table = np.full(4096, np.int32(-1), np.int32)
    hashes = np.empty(2048, np.uint64)
    first = np.empty(2048, np.int64)
    n = 0
    width = letters.shape[1]
    for i in range(letters.shape[0]):
        hashed = _STEP
        for j in range(width):
            hashed = (hashed ^ np.uint64(letters[i, j])) * np.uint64(0x100000001B3)
        hashed = mix(hashed)
        mask = np.uint64(table.size - 1)
        slot = hashed & mask
        while table[slot] >= 0:
            code = table[slot]
            if hashes[code] == hashed:
                same = True
                for j in range(width):
                    if letters[first[code], j] != letters[i, j]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = n
            hashes[n], first[n] = hashed, i
            codes[i] = n
            n += 1
            if n == first.size:
                table = _larger(table, hashes, n)
                hashes = np.concatenate((hashes, np.empty(n, np.uint64)))
                first = np.concatenate((first, np.empty(n, np.int64)))
        else:
            codes[i] = table[slot]
    return first[:n].copy()


@njit(cache=True, nogil=True)
def in_order(of_list, place):
    """Return whether rows are list by list, with rising places within a list."""
    for i in range(1, of_list.size):
        if of_list[i] < of_list[i - 1]:
            return False
        if of_list[i] == of_list[i - 1] and place[i] < place[i - 1]:
            return False
    return True


@njit(cache=True, nogil=True)
def sort_rows(of_list, place, ptr, begin, by_place, order):
    """Fill order with the rows list by list and by place, rows of the same place as they come.

    begin : one more number than places, all 0; by_place : a number per row, to work with
    """
    for i in range(place.size):
        begin[place[i] + 1] += 1
    for p in range(1, begin.size):
        begin[p] += begin[p - 1]
    for i in range(place.size):
        by_place[begin[place[i]]] = i
        begin[place[i]] += 1
    following = ptr[:-1].copy()
    for k in range(by_place.size):
        i = by_place[k]
        order[following[of_list[i]]] = i
        following[of_list[i]] += 1


@njit(cache=True, nogil=True)
def same_place(ptr, place):
    """Return the first row with the place of the row before it in its list; -1: there is none."""
    for k in range(ptr.size - 1):
        for i in range(ptr[k] + 1, ptr[k + 1]):
            if place[i] == place[i - 1]:
                return i
    return -1


@njit(cache=True, nogil=True)
def first_shown(ptr, pair, list_of_pair, row_of_pair, first):
    """Fill first with the first row of every row's pair in its list; return how many are repeats.

    list_of_pair : a number per pair, all -1; row_of_pair : a number per pair, to work with
    """
    n = 0
    for k in range(ptr.size - 1):
        for i in range(ptr[k], ptr[k + 1]):
            if list_of_pair[pair[i]] == k:
                first[i] = row_of_pair[pair[i]]
                n += 1
            else:
                list_of_pair[pair[i]] = k
                row_of_pair[pair[i]] = i
                first[i] = i
    return n
