import struct

from hypothesis import given
from hypothesis import strategies as st

from lore.embed.protobuf import write_bytes, write_float, write_int


def test_the_example_of_the_protobuf_documentation_is_written() -> None:
    assert write_int(1, 150) == bytes.fromhex("089601")
    assert write_bytes(2, "testing") == bytes.fromhex("120774657374696e67")


def test_a_field_above_fifteen_takes_two_bytes() -> None:
    assert write_int(20, 1) == bytes.fromhex("a00101")


@given(st.integers(0, 2**63 - 1))
def test_every_number_reads_back(value: int) -> None:
    raw = write_int(1, value)[1:]
    assert sum((byte & 0x7F) << 7 * place for place, byte in enumerate(raw)) == value
    assert all(byte & 0x80 for byte in raw[:-1])
    assert not raw[-1] & 0x80


@given(st.floats(width=32, allow_nan=False))
def test_every_float_reads_back(value: float) -> None:
    assert struct.unpack("<f", write_float(2, value)[1:]) == (value,)
