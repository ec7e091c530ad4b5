"""Loads object files into this process: linked by name, at an address, in milliseconds and without Numba.

Code that uses Numba's run-time library (lists, dicts, sets) is linked to its C functions (numba_runtime.py). Loaded
code stays for the life of the process, because queues and state may contain its literals. An image is loaded once.
"""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
from collections.abc import Iterable
from typing import Any

from rayelastic import _native
from rayelastic.compile.cache import numba_runtime
from rayelastic.compile.code.operator_code import MachineCode
from rayelastic.compile.config import missing_package
from rayelastic.errors import ErrorCode, SetupError

_CONTEXT_KEY, _POW = "rel_context_key", "rel_libm_pow"  # lowering/engine.py
_lock = threading.Lock()
_loaded: dict[str, tuple[Any, int]] = {}


@functools.cache
def _binding() -> Any:
    if absent := missing_package():
        raise SetupError(
            f"this process can't run machine code: {absent} isn't installed in its Python, {sys.executable}",
            hint=f"Install {absent} on each node, or declare the functions with lane='python'",
            code=ErrorCode.MISSING_PACKAGE,
        )
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    key = ctypes.c_uint()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None) != 0:
        raise OSError("no thread-specific key left in this process")
    _keep_for_ever.append(key)
    llvm.add_symbol(_CONTEXT_KEY, ctypes.addressof(key))
    llvm.load_library_permanently("libc.so.6")
    llvm.load_library_permanently("libm.so.6")
    mathematics = ctypes.CDLL("libm.so.6")
    llvm.add_symbol(_POW, ctypes.cast(mathematics.pow, ctypes.c_void_p).value)
    return llvm


_keep_for_ever: list[Any] = []
_here: dict[str, int] = {}  # registered symbols and their addresses
_not_here: set[str] = set()  # declared, but undefined in this process


def register_symbols(symbols: dict[str, int]) -> None:
    """Register the addresses of abi.h's engine services in this process; later code is linked to these."""
    llvm = _binding()
    for name, address in symbols.items():
        if _here.get(name) != address:
            llvm.add_symbol(name, address)
            _here[name] = address
            _not_here.discard(name)


def declare_symbols(names: Iterable[str]) -> None:
    """Declare names that compiled code may refer to, so that it compiles where they are undefined.

    Numba links compiled code at once and aborts the process over an unknown name; that copy never runs.
    """
    llvm = _binding()
    nowhere = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p).value
    for name in names:
        if not llvm.address_of_symbol(name):
            llvm.add_symbol(name, nowhere)
            _not_here.add(name)


@functools.cache
def engine_symbols() -> dict[str, int]:
    """Return the engine services of abi.h in this process."""
    return _native.symbols()


@functools.cache
def host_target() -> str:
    """Return the processor and features of this machine, for which code is generated."""
    llvm = _binding()
    return f"{llvm.get_process_triple()} {llvm.get_host_cpu_name()} {_features(llvm)}"


def _features(llvm: Any) -> str:
    features: str = llvm.get_host_cpu_features().flatten()
    return features


def load_image(machine: MachineCode) -> tuple[object, int]:
    """Return the owner and the address of an image's entry.

    Raises:
        LookupError: A symbol is undefined in this process; the message names it.
    """
    with _lock:
        if machine.key not in _loaded:
            _loaded[machine.key] = _link(machine)
        return _loaded[machine.key]


def _link(machine: MachineCode) -> tuple[Any, int]:
    llvm = _binding()
    absent = sorted(_not_here & set(machine.imports))
    if absent:
        raise LookupError(f"compiled code needs '{absent[0]}' of the engine, which isn't loaded in this process")
    unknown = unknown_symbols(machine.imports)
    if unknown:
        raise LookupError(f"compiled code needs '{unknown[0]}', which is nowhere in this process")
    target = llvm.Target.from_triple(llvm.get_process_triple())
    options = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(llvm), opt=3, codemodel="jitdefault", jit=True
    )
    module = llvm.parse_assembly("")
    linker = llvm.create_mcjit_compiler(module, options)
    linker.add_object_file(llvm.ObjectFileRef.from_data(machine.image))
    linker.finalize_object()
    address = linker.get_function_address(machine.entry)
    return linker, address


def unknown_symbols(names: Iterable[str]) -> list[str]:
    """Return the names that machine code imports and this process lacks; the others can be linked to now."""
    llvm, unknown = _binding(), []
    for name in names:
        if llvm.address_of_symbol(name):
            continue
        address = numba_runtime.address_of(name)
        if address:
            llvm.add_symbol(name, address)
        else:
            unknown.append(name)
    return unknown
