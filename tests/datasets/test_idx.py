"""The idx reader and writer, and the files they must refuse."""

import gzip
import struct
import tracemalloc

import numpy as np
import pytest

from magmadnn_py.datasets.idx import decode_idx, idx_md5, read_idx, write_idx


def idx_bytes(shape=(2, 3), code=0x08, data=bytes(range(6))):
    return struct.pack(f">HBB{len(shape)}I", 0, code, len(shape), *shape) + data


@pytest.mark.parametrize("name", ["array.idx", "array.gz"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "float32", "float64", ">i4", ">f8"])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3), (2, 0, 4), (2, 3, 4, 5)])
def test_round_trip(tmp_path, name, dtype, shape):
    array = (np.random.default_rng(1).normal(size=shape) * 50).astype(dtype)
    write_idx(tmp_path / name, array)
    back = read_idx(tmp_path / name)
    assert back.dtype == array.dtype.newbyteorder("=") and back.dtype.isnative
    np.testing.assert_array_equal(back, array, strict=True) if array.dtype.isnative else None
    assert np.array_equal(back, array) and back.shape == array.shape
    assert back.flags.writeable and back.flags.c_contiguous


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[:, ::-1]])
def test_writes_any_layout(tmp_path, view):
    array = np.arange(24, dtype=np.int16).reshape(4, 6)[view]
    write_idx(tmp_path / "a", array)
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)
    write_idx(tmp_path / "a", np.asfortranarray(array))
    np.testing.assert_array_equal(read_idx(tmp_path / "a"), array)


def test_bytes_are_big_endian(tmp_path):
    write_idx(tmp_path / "a", np.array([1, -2], np.int16))
    assert (tmp_path / "a").read_bytes() == bytes([0, 0, 0x0B, 1, 0, 0, 0, 2, 0, 1, 0xFF, 0xFE])


def test_gzip_is_decided_by_content(tmp_path):
    (tmp_path / "plain.gz").write_bytes(idx_bytes())
    (tmp_path / "packed").write_bytes(gzip.compress(idx_bytes()))
    for name in ("plain.gz", "packed"):
        np.testing.assert_array_equal(read_idx(tmp_path / name), np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("dtype", [bool, np.int64, np.uint16, np.float16, complex, object, "U3"])
def test_writer_refuses_other_dtypes(tmp_path, dtype):
    with pytest.raises(TypeError, match="wanted one of uint8, int8"):
        write_idx(tmp_path / "a", np.zeros(3, dtype))
    assert list(tmp_path.iterdir()) == []


PACKED = gzip.compress(idx_bytes((10, 30), data=np.random.default_rng(2).bytes(300)))
HTML = b"<!DOCTYPE html><html><body>404</body></html>".ljust(727)
BAD_FILES = {
    "empty": (b"", "empty"),
    "gzip of nothing": (gzip.compress(b""), "empty"),
    "cut magic": (b"\0\0\x08", "too short"),
    "cut header": (idx_bytes()[:10], "too short: the header of 2 axes has 12 bytes"),
    "too little data": (idx_bytes(data=bytes(5)), "header says uint8 of shape .2, 3., 6 bytes"),
    "too little data in gzip": (gzip.compress(idx_bytes(data=bytes(5))), "but only 5 follow"),
    "trailing bytes": (idx_bytes(data=bytes(7)), "but more follow"),
    "trailing bytes in gzip": (gzip.compress(idx_bytes(data=bytes(7))), "but more follow"),
    "trailing bytes after gzip": (PACKED + b"junk", "damaged gzip"),
    "gzip cut by 100 bytes": (PACKED[:-100], "truncated gzip"),
    "gzip cut by its last byte": (PACKED[:-1], "truncated gzip"),
    "gzip header only": (PACKED[:5], "truncated gzip"),
    "flipped byte in gzip data": (PACKED[:60] + bytes([PACKED[60] ^ 255]) + PACKED[61:], "damaged gzip|header"),
    "wrong check sum": (PACKED[:-8] + b"abcd" + PACKED[-4:], "damaged gzip file: CRC"),
    "HTML": (HTML, "an HTML page"),
    "HTML in gzip": (gzip.compress(HTML), "an HTML page"),
    "zip": (b"PK\x03\x04" + bytes(50), "not an idx file: starts with bytes 50 4b 03 04"),
    "little-endian header": (struct.pack("<II", 0x0801, 3) + bytes(3), "not an idx file"),
    "unknown type": (idx_bytes(code=0x0A), "not an idx file"),
    "255 axes": (b"\0\0\x08\xff" + bytes(2000), "not an idx file"),
    "sizes of a giant": (idx_bytes((2**32 - 1,) * 3), "more than the file can hold"),
    "sizes of a giant in gzip": (gzip.compress(idx_bytes((2**32 - 1,) * 3)), "more than the file can hold"),
    "sizes of an empty giant": (idx_bytes((2**32 - 1,) * 8 + (0,), data=b""), "cannot reshape|too big|too large"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file_is_one_line_with_name_and_reason(tmp_path, case):
    content, reason = BAD_FILES[case]
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=reason) as caught:
        read_idx(path)
    assert str(caught.value).startswith(f"{path}: ") and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=f"^name: .*{reason}"):
        decode_idx(content, "name")


def test_lying_header_allocates_nothing(tmp_path):
    # A gzip file of 64 kB may hold up to 66 MB by the ratio rule: only what is there may be allocated.
    content = gzip.compress(idx_bytes((60_000_000,), data=b"")) + bytes(64_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match="but only 0 follow"):
        decode_idx(content, "name")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000


def test_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_idx(tmp_path / "absent")


def test_md5_is_of_the_plain_file(tmp_path):
    import hashlib

    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    write_idx(tmp_path / "a", array)
    assert idx_md5(array) == hashlib.md5((tmp_path / "a").read_bytes()).hexdigest()


def test_non_ascii_folder(tmp_path):
    path = tmp_path / "ü模型" / "a.gz"
    write_idx(path, np.arange(3, dtype=np.uint8))
    np.testing.assert_array_equal(read_idx(path), [0, 1, 2])
    path.write_bytes(b"junk")
    with pytest.raises(ValueError, match="ü模型"):
        read_idx(path)
