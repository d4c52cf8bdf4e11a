"""Handles: a compiled method and its term as two numbers, so that code which calls it need not be compiled for it.

The asynchronous engine is the same for every loss and every regulariser. If it took the terms themselves, numba would
compile it anew for each combination, for seconds. It takes handles instead: the address of the compiled method and the
address of the term's data. So each loss and each regulariser is compiled once, on its own, and every combination of what is
compiled already starts at once. The cost is an indirect call, some nanoseconds.

A term's data is the structure that numba would pass by value, written to memory once, with its arrays' reference counts
left out: whoever makes a handle keeps the arrays alive (see :class:`Handle`), and workers do not fight over the counts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._jit import address_of, by_class, run, when_numba_loads
from .errors import CompilationError
from .regularizers._elementwise import soft_threshold

__all__ = ["EstimatorHandle", "Handle", "RegularizerHandle", "UnitHandle", "make_handle"]

Array = np.ndarray[Any, Any]


class Handle(NamedTuple):
    """A term's compiled method, and what must live as long as it may be called."""

    code: int
    data: int
    alive: Any


class RegularizerHandle(NamedTuple):
    """A regulariser in compiled code that was not compiled for it."""

    code: int
    data: int

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Call the regulariser's prox."""
        call(self.code, self.data, (v, step, out))


class EstimatorHandle(NamedTuple):
    """A gradient estimate, with rows and loss, in compiled code that was not compiled for it."""

    code: int
    data: int

    def estimate(self, x: Array, batch: Array, keep: float, scale: float, buffers: Any, out: Array) -> bool:
        """Call the estimator's estimate."""
        return call(self.code, self.data, (x, batch, keep, scale, buffers, out))


class UnitHandle(NamedTuple):
    """A regulariser that falls into units, in compiled code that was not compiled for it."""

    code: int
    data: int
    lasso: float  # the strength of an L1 norm, otherwise NaN: thousands of calls for a number each would cost too much

    def prox_unit(self, unit: int, v: Array, step: float, out: Array) -> None:
        """Call the regulariser's prox of one unit."""
        if self.lasso >= 0.0:
            soft_threshold(v, step * self.lasso, out)
        else:
            call(self.code, self.data, (unit, v, step, out))


def prox_entry(kind: Any, data: int, v: Array, step: float, out: Array) -> bool:
    """Run the prox of the regulariser whose data is at an address."""
    load(data, kind).prox(v, step, out)
    return True


def unit_entry(kind: Any, data: int, unit: int, v: Array, step: float, out: Array) -> bool:
    """Run the prox of one unit of the regulariser whose data is at an address."""
    prox_of_unit(load(data, kind), unit, v, step, out)
    return True


@by_class(arity=5)
def prox_of_unit(regularizer: type) -> Callable[..., None]:
    """Run the prox of one unit, given and returned flat."""
    return _prox_of_elements if getattr(regularizer, "elementwise", False) else _prox_of_own_unit


def _prox_of_elements(regularizer: Any, unit: int, v: Array, step: float, out: Array) -> None:
    regularizer.prox(v, step, out)


def _prox_of_own_unit(regularizer: Any, unit: int, v: Array, step: float, out: Array) -> None:
    regularizer.prox_unit(unit, v, step, out)


def estimate_entry(kind: Any, data: int, x: Array, batch: Array, keep: float, scale: float, buffers: Any, out: Array) -> bool:
    """Run the estimate of the estimator whose data is at an address."""
    return load(data, kind).estimate(x, batch, keep, scale, buffers, out)


def make_handle(entry: Callable[..., bool], term: tuple[Any, ...], *arguments: Any) -> Handle:
    """Compile ``entry`` for a term and further arguments of these types, and write the term's data to memory."""
    form = entry, _form(term), _form(arguments)
    if form not in _codes:
        kind = _checked_type(term)
        _codes[form] = address_of(entry, term, (kind, 0, *arguments)), _size_of(kind)
    code, size = _codes[form]
    memory = np.zeros(size + 64, np.uint8)
    data = int(memory.ctypes.data)
    run(write, term, data)
    return Handle(code, data, (memory, term))


_codes: dict[Any, tuple[int, int]] = {}  # of entries by the form of all arguments: the address, and the size of the term


def _form(value: Any) -> Any:
    """Return what numba's type of a value depends on, which it takes numba ten times as long to say."""
    if isinstance(value, tuple):
        return type(value), *map(_form, value)
    if isinstance(value, np.ndarray):
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    return type(value)


def _checked_type(term: tuple[Any, ...]) -> Any:
    """Return numba's type of a term, if its fields are such that their data may lie about without an owner."""
    from numba import typeof, types

    def allowed(kind: Any) -> bool:
        if isinstance(kind, types.BaseTuple):
            return all(allowed(part) for part in kind)
        return isinstance(kind, (types.Number, types.Boolean, types.NoneType, types.Array))

    for name, value in zip(type(term)._fields, term, strict=True):  # type: ignore[attr-defined]
        try:
            fine = allowed(typeof(value))
        except (ValueError, TypeError):
            fine = False
        if not fine:
            raise CompilationError(
                f"{type(term).__name__}: field {name!r} must be a number, an array or a tuple of these to be compiled; "
                f"got {type(value).__name__}"
            )
    return typeof(term)


@functools.cache  # an interrupt inside numba's refresh is not forgiven: refresh as rarely as possible
def _size_of(kind: Any) -> int:
    from numba.core.registry import cpu_target

    context = cpu_target.target_context
    context.refresh()
    return int(context.get_abi_sizeof(context.get_data_type(kind)))


def write(term: Any, address: int) -> None:
    """Write a term's data to memory."""
    store(term, address)


# The three functions below exist in compiled code only.


def load(address: int, kind: Any) -> Any:
    """Return the term whose data is at an address."""
    raise NotImplementedError("only in compiled code")


def store(term: Any, address: int) -> None:
    """Write a term's data to memory, without reference counts."""
    raise NotImplementedError("only in compiled code")


def call(code: int, data: int, arguments: tuple[Any, ...]) -> bool:
    """Call the compiled entry at an address."""
    raise NotImplementedError("only in compiled code")


@when_numba_loads
@functools.cache
def _register() -> None:
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic, overload

    @intrinsic
    def load_it(typing: Any, address: Any, kind: Any) -> Any:
        term = kind.instance_type

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            model = context.data_model_manager[term]
            pointer = builder.inttoptr(arguments[0], model.get_data_type().as_pointer())
            return model.load_from_data_pointer(builder, pointer)

        return term(address, kind), emit

    def without_counts(context: Any, builder: Any, kind: Any, value: Any) -> Any:
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, value)
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            return array._getvalue()
        if isinstance(kind, types.BaseTuple):
            for place, part in enumerate(kind):
                bare = without_counts(context, builder, part, builder.extract_value(value, place))
                value = builder.insert_value(value, bare, place)
        return value

    @intrinsic
    def store_it(typing: Any, term: Any, address: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            model = context.data_model_manager[term]
            pointer = builder.inttoptr(arguments[1], model.get_data_type().as_pointer())
            bare = without_counts(context, builder, term, arguments[0])
            builder.store(model.as_data(builder, bare), pointer)
            return context.get_dummy_value()

        return types.void(term, address), emit

    @intrinsic
    def call_it(typing: Any, code: Any, data: Any, arguments: Any) -> Any:
        takes = (types.voidptr, types.intp, *arguments)  # the first stands for the entry's ``kind``, which has no value

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            pointer = builder.inttoptr(values[0], convention.get_function_type(types.boolean, takes).as_pointer())
            null = cgutils.get_null_value(context.get_value_type(types.voidptr))
            unpacked = [builder.extract_value(values[2], place) for place in range(len(arguments))]
            status, result = convention.call_function(builder, pointer, types.boolean, takes, [null, values[1], *unpacked])
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return types.boolean(code, data, arguments), emit

    overload(load)(lambda address, kind: lambda address, kind: load_it(address, kind))
    overload(store)(lambda term, address: lambda term, address: store_it(term, address))
    overload(call)(lambda code, data, arguments: lambda code, data, arguments: call_it(code, data, arguments))
