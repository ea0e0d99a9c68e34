"""The idx format of MNIST: two zero bytes, a type byte, the number of axes, each axis, the data; big-endian.

Files may be gzipped; that is decided by their content, not their name.
"""

import gzip
import hashlib
import io
import math
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from magmadnn_py.utils.files import atomic_write

DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
TYPE_BYTES = {np.dtype(dtype).newbyteorder("="): code for code, dtype in DTYPES.items()}
GZIP_MAGIC = b"\x1f\x8b"
LARGEST_GZIP_RATIO = 1032  # deflate cannot shrink data more than this
LARGEST_RANK = 32  # of a NumPy 1 array
CHUNK_BYTES = 1 << 20


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """Array of an idx file, plain or gzipped, in native byte order and writable.

    Raises ValueError, one line with the file's name, if the file is not idx, damaged, too short or too long;
    OSError if it cannot be read.
    """
    with open(path, "rb") as file:
        return _read(file, os.fstat(file.fileno()).st_size, os.fspath(path))


def decode_idx(content: bytes, name: str) -> np.ndarray:
    """Same as `read_idx` for the bytes of a file; `name` is for the messages."""
    return _read(io.BytesIO(content), len(content), name)


def write_idx(path: str | os.PathLike, array: np.ndarray) -> None:
    """Writes `array` as idx, gzipped if `path` ends in `.gz`; the file appears whole or not at all.

    dtypes: uint8, int8, int16, int32, float32, float64 (TypeError for others).
    """
    parts = _encode(array)
    if Path(path).suffix == ".gz":
        # Level 9, the usual one, takes ten times as long for 2 % less. No time stamp: same array, same file.
        parts = (gzip.compress(b"".join(parts), compresslevel=6, mtime=0),)
    atomic_write(path, *parts)


def idx_md5(array: np.ndarray) -> str:
    """MD5, in hexadecimal, of the uncompressed idx file that holds `array`."""
    digest = hashlib.md5(usedforsecurity=False)
    for part in _encode(array):
        digest.update(part)
    return digest.hexdigest()


def _encode(array: np.ndarray) -> tuple[bytes, bytes]:
    array = np.asarray(array)
    code = TYPE_BYTES.get(array.dtype.newbyteorder("="))
    if code is None:
        wanted = ", ".join(map(str, TYPE_BYTES))
        raise TypeError(f"idx: array has dtype {array.dtype}, wanted one of {wanted}")
    header = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return header, array.astype(DTYPES[code], order="C", copy=False).tobytes()


def _read(file: BinaryIO, file_size: int, name: str) -> np.ndarray:
    try:
        start = file.read(len(GZIP_MAGIC))
        file.seek(0)
        if start == GZIP_MAGIC:
            with gzip.GzipFile(fileobj=file) as unzipped:
                return _read_plain(unzipped, file_size * LARGEST_GZIP_RATIO)
        return _read_plain(file, file_size)
    except EOFError:
        raise ValueError(f"{name}: truncated gzip file of {file_size} bytes") from None
    except (zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{name}: damaged gzip file: {error}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _read_plain(file: BinaryIO, largest: int) -> np.ndarray:
    dtype, shape = _read_header(file)
    # Checked before anything is allocated: a damaged header may ask for any size.
    wanted = math.prod(shape) * dtype.itemsize
    promise = f"header says {dtype.name} of shape {shape}, {wanted} bytes"
    if wanted > largest:
        raise ValueError(f"{promise}: more than the file can hold")
    payload = bytearray()
    while len(payload) < wanted and (chunk := file.read(min(CHUNK_BYTES, wanted - len(payload)))):
        payload += chunk
    if len(payload) < wanted:
        raise ValueError(f"{promise}, but only {len(payload)} follow")
    if file.read(1):  # in a gzip file this also compares the check sum
        raise ValueError(f"{promise}, but more follow")
    array = np.frombuffer(payload, dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _read_header(file: BinaryIO) -> tuple[np.dtype, tuple[int, ...]]:
    magic = file.read(4)
    if len(magic) < 4:
        raise ValueError(f"{'empty' if not magic else 'too short'}: an idx header has at least 4 bytes")
    zeros, code, rank = struct.unpack(">HBB", magic)
    if zeros or code not in DTYPES or rank > LARGEST_RANK:
        kind = "an HTML page" if magic.lstrip()[:1] == b"<" else "not an idx file"
        raise ValueError(
            f"{kind}: starts with bytes {magic.hex(' ')}, wanted 00 00, a type 08 to 0e, 00 to {LARGEST_RANK:x} axes"
        )
    sizes = file.read(4 * rank)
    if len(sizes) < 4 * rank:
        raise ValueError(f"too short: the header of {rank} axes has {4 + 4 * rank} bytes")
    return np.dtype(DTYPES[code]), struct.unpack(f">{rank}I", sizes)
