"""Numbers in text, with a decimal point or a decimal comma."""

from __future__ import annotations

import re

from .._arguments import argument

__all__ = ["TRUTH", "is_missing", "is_number", "misread", "to_number"]

TRUTH = {"true": 1.0, "false": 0.0}  # as spreadsheets and pandas write them, whatever their capitals
_MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?", "."})
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}([,.'_ \u00a0\u202f\u2019])\d{3}(\1\d{3})*([.,]\d*)?")


def to_number(text: str, decimal: str = ".") -> float:
    """Return a text as a number; raise ``ValueError`` if it is none."""
    if "_" in text:
        raise ValueError(f"{text!r} has an underscore, which Python would pass over")
    if decimal == ".":
        return float(text)
    if "." in text:
        raise ValueError(f"{text!r} has a point")
    return float(text.replace(decimal, ".", 1))


def is_number(text: str, decimal: str = ".") -> bool:
    """Tell whether a text is a number."""
    try:
        to_number(text, decimal)
    except ValueError:
        return False
    return True


def is_missing(text: str) -> bool:
    """Tell whether a text stands for a value that is missing."""
    return text.strip().lower() in _MISSING


def misread(text: str, decimal: str = ".") -> tuple[str, str] | None:
    """Return why a number is none as it is written, and what to do; None if it is no number however it is read.

    Examples
    --------
    >>> misread("1,5")
    ('has a decimal comma', "write numbers with a point, or say decimal=','")
    >>> misread("1,000.5")
    ('has separators of thousands', 'write numbers without them')
    >>> misread("red")
    """
    text = text.strip()
    grouped = _THOUSANDS.fullmatch(text) is not None
    if is_number(text, "," if decimal == "." else "."):
        option = argument("decimal", ",")
        wrong, right, otherwise = (
            ("comma", "point", f"say {option}") if decimal == "." else ("point", "comma", f"leave {option} out")
        )
        if grouped:
            return (
                f"has a {wrong}, of decimals or of thousands",
                f"write numbers with a {right} and without separators of thousands, or {otherwise}",
            )
        return f"has a decimal {wrong}", f"write numbers with a {right}, or {otherwise}"
    return ("has separators of thousands", "write numbers without them") if grouped else None
