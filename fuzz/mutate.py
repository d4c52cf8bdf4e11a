"""Changes of a file that break readers: a deterministic sample for the tests, with no fuzzer needed."""

from __future__ import annotations

import random

NUMBERS = [b"0", b"-1", b"1e999", b"nan", b"inf", b"1e-320", b"9" * 20, b"0x10", b"1_0", b"\xc2\xb2", b"true", b"{}", b"[]"]


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Return a file changed in one to four ways."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        where = rng.randrange(len(data) + 1)
        what = rng.randrange(8)
        if what == 0 and data:
            data[min(where, len(data) - 1)] ^= 1 << rng.randrange(8)
        elif what == 1 and data:
            data[min(where, len(data) - 1)] = rng.choice([0, 1, 10, 34, 44, 58, 127, 128, 255])
        elif what == 2:
            del data[where : where + rng.randint(1, 16)]
        elif what == 3:
            data[where:where] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        elif what == 4:
            data[where:where] = rng.choice(NUMBERS)
        elif what == 5:
            start = rng.randrange(len(data) + 1)
            data[where:where] = data[start : start + rng.randint(1, 32)]
        elif what == 6:
            size = rng.choice([1, 2, 4, 8])
            data[where : where + size] = rng.choice([0, 1, 2**31 - 1, 2**63 - 1, 2**64 - 1, 2**32]).to_bytes(9, "little")[:size]
        else:
            del data[where:]
    return bytes(data)
