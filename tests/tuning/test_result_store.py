from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore

ABOUT = {"study": "s", "scale": "small"}


def test_what_is_kept_is_found_again(tmp_path):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path, ABOUT)
    store.put("a", {"x": (1.5, None)})
    assert store["a"] == {"x": [1.5, None]}  # as it will be read
    again = ResultStore(path, ABOUT)
    assert "a" in again
    assert "b" not in again
    assert again["a"] == {"x": [1.5, None]}


@pytest.mark.parametrize("cut", range(1, 30))
def test_a_line_cut_short_is_dropped_and_the_rest_kept(tmp_path, cut):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path, ABOUT)
    store.put("a", 1)
    store.put("b", {"long": "value of some length"})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    again = ResultStore(path, ABOUT)
    assert again["a"] == 1
    assert "b" not in again
    again.put("b", 2)
    assert len(ResultStore(path, ABOUT)) == 2


def test_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "results.jsonl"
    store = ResultStore(path, ABOUT)
    store.put("a", 0.25)
    store.put("b", "text")
    whole = path.read_bytes()
    for place in range(len(whole) - 1):  # without the last line feed the last line is cut short
        broken = bytearray(whole)
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(rg.DataError, match=r"results\.jsonl"):
            ResultStore(path, ABOUT)


def test_a_file_of_an_older_version_is_read(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"about": {"study": "s", "scale": "small"}}\n{"key": "a", "value": 1}\n')
    assert ResultStore(path, ABOUT)["a"] == 1


def test_results_of_something_else_are_refused(tmp_path):
    path = tmp_path / "results.jsonl"
    ResultStore(path, ABOUT).put("a", 1)
    with pytest.raises(rg.DataError, match="scale was 'small', here it is 'full'"):
        ResultStore(path, ABOUT | {"scale": "full"})
    path.write_text("hello\nthere\n")
    with pytest.raises(rg.DataError, match=r"results\.jsonl:1"):
        ResultStore(path, ABOUT)


def test_numbers_that_json_has_not_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        ResultStore(None, ABOUT).put("a", float("nan"))
