"""The only numba magic: plain Python functions and NamedTuple methods become compiled code.

Everything that runs in a hot loop is an ordinary Python function marked with :func:`kernel`, or an ordinary method of a
``typing.NamedTuple`` (a loss, a regulariser, the rows...). Nothing is compiled, and numba is not even imported, until
:func:`compiled` is asked for a function together with the arguments that it will get.

How it works:

- A marked function is made known to numba by ``overload``, a method by ``overload_method`` on numba's type of all named
  tuples. Both just hand numba the plain Python body, so that compiled code can call them and LLVM inlines them.
- Compiled code is kept on disk (``_disk_cache.py``). Terms that a user wrote live outside the package; their
  specialisations are compiled in memory and never stored.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ._disk_cache import cache_folder, make_cache, say_that_it_compiles
from ._signals import no_signal_is_lost
from .errors import CompilationError

__all__ = [
    "address_of",
    "by_class",
    "compiled",
    "extern",
    "is_foreign",
    "is_own",
    "kernel",
    "method_names",
    "run",
    "when_numba_loads",
]

_PACKAGE = __package__ or "dapsgd"
_lock = threading.RLock()  # guards the three lists below and every call into numba's registries
_kernels: list[tuple[Callable[..., Any], dict[str, Any]]] = []
_externs: list[tuple[Callable[..., Any], str, str, tuple[str, ...]]] = []
_hooks: list[Callable[[], None]] = []
_choices: list[tuple[Callable[..., Any], Callable[[type], Callable[..., Any]], int]] = []

# Methods that compiled code may call on a term, with the number of arguments after self.
_METHODS = {
    "value": 2,  # of a loss; a regulariser's value is only called from Python
    "derivative": 2,
    "second_derivative": 2,
    "conjugate": 2,
    "gradient": 3,
    "prox": 3,
    "prox_unit": 4,  # of a regulariser that falls into units
    "dot": 3,
    "weighted_dot": 2,  # of columns
    "add_multiple": 3,
    "add": 3,
    "combine": 6,
    "estimate": 6,
    "send": 6,
    "apply": 7,
}


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Mark a plain function as one that compiled code may call; the function itself stays as it is."""
    if function is None:
        return functools.partial(kernel, **options)
    with _lock:
        _kernels.append((function, options))
    return function


def extern(symbol: str, returns: str, *takes: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a function a compiled form that calls the C function ``symbol`` of the running interpreter."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        with _lock:
            _externs.append((function, symbol, returns, takes))
        return function

    return mark


def by_class(arity: int) -> Callable[[Callable[[type], Callable[..., Any]]], Callable[..., Any]]:
    """Turn ``choose(class of the first argument) -> function`` into that function, in Python and in compiled code."""

    def mark(choose: Callable[[type], Callable[..., Any]]) -> Callable[..., Any]:
        @functools.wraps(choose)
        def chosen(term: Any, *others: Any) -> Any:
            return choose(type(term))(term, *others)

        with _lock:
            _choices.append((chosen, choose, arity))
        return chosen

    return mark


def when_numba_loads(hook: Callable[[], None]) -> Callable[[], None]:
    """Have ``hook`` called before anything is compiled."""
    with _lock:
        _hooks.append(hook)
    return hook


def method_names() -> frozenset[str]:
    """Return the names that mean a method in compiled code, so that no field may have them."""
    return frozenset(_METHODS)


def compiled(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return ``function`` compiled for the types of ``arguments``, from disk if it was compiled before."""
    with _lock:
        numba = _register()
        dispatcher = _dispatcher(function, is_foreign(arguments))
        with _explaining(arguments):
            dispatcher.compile(tuple(numba.typeof(argument) for argument in arguments))
        return dispatcher


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` compiled; the first time for arguments of these types it compiles."""
    dispatcher = prepared(function, *arguments)
    try:
        return dispatcher(*arguments)
    except Exception as error:
        _explain(error, arguments)
        raise


def prepared(function: Callable[..., Any], *arguments: Any) -> Callable[..., Any]:
    """Return what :func:`run` would call, for code that calls it often with arguments of these types."""
    foreign = is_foreign(arguments)
    with _lock:
        _register()
        result: Callable[..., Any] = _dispatcher(function, foreign)
    return result


def address_of(function: Callable[..., Any], term: Any, arguments: tuple[Any, ...]) -> int:
    """Return the address of ``function`` compiled for the types of ``arguments``, which may be numba types themselves."""
    with _lock:
        numba = _register()
        dispatcher = _dispatcher(function, is_foreign(term))
        signature = tuple(numba.typeof(argument) for argument in arguments)
        if signature not in dispatcher.overloads:
            with _explaining((term,)):
                dispatcher.compile(signature)
        code = dispatcher.overloads[signature]
        return int(code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


def is_foreign(argument: Any) -> bool:
    """Tell whether something is a term that a user wrote, or holds one. Called before each call of compiled code: no frills."""
    if not isinstance(argument, tuple):
        return False
    kind = type(argument)
    if kind is not tuple and not is_own(kind):
        return True
    for part in argument:  # noqa: SIM110
        if isinstance(part, tuple) and is_foreign(part):
            return True
    return False


@functools.cache
def is_own(kind: type) -> bool:
    """Tell whether a class is found in this package under its name; one that an example of ours defines only says it is."""
    module = kind.__module__
    return module.partition(".")[0] == _PACKAGE and getattr(sys.modules.get(module), kind.__qualname__, None) is kind


@contextlib.contextmanager
def _explaining(arguments: tuple[Any, ...]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        _explain(error, arguments)
        raise


def _explain(error: Exception, arguments: tuple[Any, ...]) -> None:
    """Turn numba's pages about a user's term into a sentence that says where; name the term, if it is one that raised."""
    from numba.core.errors import NumbaError

    names = ", ".join(sorted({type(a).__name__ for a in _parts(arguments) if is_foreign(a)}))
    if isinstance(error, NumbaError):
        text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        said = [line.strip() for line in text.splitlines() if line.strip()]
        where = next((line for line in said if line.startswith("File ") and _PACKAGE not in line), "")
        calls = [line.removeprefix(">>> ") for line in said if re.match(r">>> (?!overloaded)", line)]
        reasons = [line for line in said if re.match(r"(Unknown|Cannot|Untyped|Invalid|Use of|NameError)", line)]
        reason = reasons[-1] if reasons else f"there is no compiled {calls[-1]}" if calls else said[0]
        if "<class 'function'>" in reason:
            reason += "; a function that it calls needs @numba.njit"
        elif reason.startswith("Untyped global name"):
            reason += "; make it a field of the class: a number, a tuple or an array"
        for part in _parts(arguments):
            if is_foreign(part) and reason.startswith("Unknown attribute") and f"of type {type(part).__name__}(" in reason:
                reason = (
                    f"{reason.partition(' of type ')[0]} of {type(part).__name__}, whose fields are {', '.join(part._fields)}"
                )
        place = f" ({where.rstrip(':')})" if where else ""
        raise CompilationError(f"{names or 'a term'} could not be compiled: {reason}{place}") from error
    if names:
        error.add_note(f"raised by the compiled code of {names}")


def _parts(arguments: Any) -> Iterator[Any]:
    for argument in arguments:
        yield argument
        if isinstance(argument, tuple):
            yield from _parts(argument)


@functools.cache
def _dispatcher(function: Callable[..., Any], foreign: bool) -> Any:
    numba = _numba()
    dispatcher = numba.njit(function, nogil=True, error_model="numpy")
    folder = None if foreign else cache_folder()
    if folder is not None:
        dispatcher._cache = make_cache(function, folder)
    elif not foreign:
        say_that_it_compiles()
    compile_it = dispatcher.compile

    def compile_interruptibly(signature: Any) -> Any:
        with no_signal_is_lost():
            return compile_it(signature)

    dispatcher.compile = compile_interruptibly
    return dispatcher


@functools.cache
def _numba() -> Any:
    with no_signal_is_lost():
        import numba
    return numba


def _register() -> Any:
    """Hand every marked function and every term method to numba, once."""
    numba = _numba()
    if not (_hooks or _kernels or _externs or _choices):
        return numba
    from numba import types
    from numba.extending import overload

    _register_methods()
    while _hooks:
        _hooks[-1]()
        _hooks.pop()  # only now: an interrupt in between must not lose it
    while _kernels:
        function, options = _kernels[-1]
        overload(function, jit_options=options, strict=False)(_returning(function))
        _kernels.pop()
    while _externs:
        function, symbol, returns, takes = _externs[-1]
        signature = getattr(types, returns)(*(getattr(types, name) for name in takes))
        overload(function, strict=False)(_calling(types.ExternalFunction(symbol, signature), len(takes)))
        _externs.pop()
    while _choices:
        function, choose, arity = _choices[-1]
        overload(function, strict=False)(_of_arity(arity, functools.partial(_choice, choose)))
        _choices.pop()
    return numba


@functools.cache
def _register_methods() -> None:
    from numba import types
    from numba.extending import overload_method

    _keep_symbols_apart()
    for name, arity in _METHODS.items():
        pick = functools.partial(_plain_method, name)
        overload_method(types.BaseNamedTuple, name, strict=False)(_of_arity(arity + 1, pick))


def _keep_symbols_apart() -> None:
    """Count this process's functions from a random start.

    A symbol's name is made of names and of such a number, and what comes from the disk has the number of the process that
    compiled it. If both counted from 1, a class of the user's could take the symbol of a built-in of the same name.
    """
    from numba.core.bytecode import FunctionIdentity

    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(62))


def _choice(choose: Callable[[type], Callable[..., Any]], kind: Any) -> Callable[..., Any]:
    return choose(kind.instance_class)


def _plain_method(name: str, kind: Any) -> Any:
    return getattr(kind.instance_class, name, None)


def _returning(function: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*_: Any) -> Callable[..., Any]:
        return function

    return choose


def _calling(external: Any, count: int) -> Callable[..., Any]:
    if count == 0:

        def none() -> Any:
            return external()

        return lambda: none
    if count == 1:

        def one(a: Any) -> Any:
            return external(a)

        return lambda a: one

    def two(a: Any, b: Any) -> Any:
        return external(a, b)

    return lambda a, b: two


def _of_arity(arity: int, pick: Callable[[Any], Any]) -> Callable[..., Any]:
    """Make the function ``(first, a1, ...) -> pick(first)``; numba counts its parameters."""
    scope: dict[str, Any] = {"pick": pick}
    names = "".join(f", a{k}" for k in range(1, arity))
    exec(f"def overloaded(first{names}):\n    return pick(first)", scope)
    return scope["overloaded"]
