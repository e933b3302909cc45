"""Messages come back as they were, and what is none is refused in one line."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxcd.errors import FormatError
from jaxcd.federated import Message

SENT = Message(
    "ask",
    "run",
    "coördinator",
    3,
    {"sets": [[0, 1]], "weights": [0.1]},
    {"values": np.arange(6, dtype=np.uint64).reshape(2, 3), "bytes": np.arange(4, dtype=np.uint8)},
)


def test_a_message_comes_back() -> None:
    found = Message.decode(SENT.encode())
    assert (found.kind, found.run, found.sender, found.round) == ("ask", "run", "coördinator", 3)
    assert found.body == SENT.body
    for name, array in SENT.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back_to_the_last_bit(x: float) -> None:
    assert Message.decode(Message("a", "r", "s", body={"x": x}).encode()).body["x"] == x


@given(st.binary(max_size=60))
def test_bytes_that_are_no_message_are_refused(content: bytes) -> None:
    for prefix in (b"", b"JXCF", b"JXCF" + struct.pack("<I", max(len(content) - 2, 0))):
        with pytest.raises(FormatError, match=r"^message: [^\n]*$"):
            Message.decode(prefix + content)


@given(st.integers(0, len(SENT.encode()) - 1))
def test_what_is_cut_off_is_refused(length: int) -> None:
    with pytest.raises(FormatError, match=r"^message: "):
        Message.decode(SENT.encode()[:length])


def changed(**parts: object) -> bytes:
    content = SENT.encode()
    (length,) = struct.unpack("<I", content[4:8])
    header = {**json.loads(content[8 : 8 + length]), **parts}
    text = json.dumps(header).encode()
    return b"JXCF" + struct.pack("<I", len(text)) + text + content[8 + length :]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"version": 2}, "version 2, this jaxcd reads 1"),
        ({"format": "x"}, "another format"),
        ({"round": "0"}, "its round is missing"),
        ({"round": True}, "its round is missing"),
        ({"body": None}, "its body is missing"),
        ({"arrays": [{"name": "a"}]}, "no name, dtype and shape"),
        ({"arrays": [{"name": "a", "dtype": "|O", "shape": [1]}]}, "unknown dtype"),
        ({"arrays": [{"name": "a", "dtype": "<u8", "shape": [-1]}]}, "unknown dtype or shape"),
        ({"arrays": [{"name": "a", "dtype": "<u8", "shape": [10**9]}]}, "cut off"),
        ({"arrays": []}, "longer than it says"),
        ({"run": "\ud800"}, "its header is no JSON"),
        ({"body": {"label": "\ud800"}}, "its header is no JSON"),
        ({"arrays": [{"name": "a", "dtype": "|u1", "shape": [0] * 100}]}, "has no such shape"),
        ({"arrays": [{"name": "a", "dtype": "|u1", "shape": [0, 2**70]}]}, "has no such shape"),
    ],
)
def test_lies_about_the_content_are_refused(parts: dict[str, object], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        Message.decode(changed(**parts))
