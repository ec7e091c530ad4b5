"""Compiled functions called by a loop in C over runs of records, without the engine around them. Needs gcc."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rayelastic.compile import Compiler
from rayelastic.compile.cache.loader import load_image
from rayelastic.graph.records.schema import Schema
from rayelastic.graph.spec.operator_spec import Lane
from rayelastic.graph.spec.requests import FunctionKind, FunctionRequest

RUN_RECORDS = 256
VIEW_BYTES = 16  # of a text in a record

DRIVER = """
#include <stdint.h>
#include <string.h>
typedef int64_t (*process)(const void *, int64_t, void *, int64_t, void *, void *);

static int64_t flushed;
int rel_flush(void *context, int64_t n) { (void)context; flushed += n; return 0; }

int64_t chain(process *functions, int count, const char *records, int64_t n, int64_t stride, char *even, char *odd) {
  int64_t done = 0;
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t size = n - at < 256 ? n - at : 256;
    const void *in = records + at * stride;
    for (int i = 0; i < count; ++i) {
      void *out = i % 2 ? odd : even;
      done += functions[i](in, size, out, size, 0, 0);
      in = out;
    }
  }
  return done;
}

int64_t passes(process function, const char *records, int64_t n, int64_t stride, char *run, void *context, char *out) {
  int64_t done = 0;
  flushed = 0;
  for (int64_t at = 0; at < n; at += 256) {
    const int64_t made = function(records + at * stride, n - at < 256 ? n - at : 256, run, 256, 0, context);
    if (made < 0) return made;
    if (out) memcpy(out + done * stride, run, (size_t)(made * stride));
    done += made;
  }
  return done + flushed;
}
"""


def driver() -> ctypes.CDLL:
    """Return the loops, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "driver.c", Path(folder) / "driver.so"
        source.write_text(DRIVER)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        loaded = ctypes.CDLL(str(library))
    loaded.chain.restype = loaded.passes.restype = ctypes.c_int64
    return loaded


def address_of(function: Callable[..., Any], kind: FunctionKind, schema: Schema) -> int:
    """Return where the machine code of a function begins."""
    code = Compiler().compile(FunctionRequest(function.__name__, kind, function, schema, lane=Lane.COMPILED))
    assert code.machine is not None
    _, address = load_image(code.machine)
    return address


def views_of(texts: Sequence[bytes], repeats: int = 1) -> tuple[Any, Any]:
    """Return records of one text each, repeated, and the memory that they point into."""
    whole = b"".join(texts) + bytes(8)
    block = ctypes.create_string_buffer(whole, len(whole))
    views, at = bytearray(), ctypes.addressof(block)
    for text in texts:
        short = len(text) <= VIEW_BYTES - 4
        views += struct.pack("<I12s", len(text), text) if short else struct.pack("<I4sQ", len(text), text[:4], at)
        at += len(text)
    return np.tile(np.frombuffer(bytes(views), dtype=np.uint8), repeats), block


def text_of(view: bytes) -> str:
    """Return the text of a record."""
    (size,) = struct.unpack_from("<I", view)
    if size <= VIEW_BYTES - 4:
        return view[4 : 4 + size].decode()
    return ctypes.string_at(struct.unpack_from("<Q", view, 8)[0], size).decode()
