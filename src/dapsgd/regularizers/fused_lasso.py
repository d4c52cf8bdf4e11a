"""The fused lasso."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from .._checks import non_negative, validated
from .._jit import kernel, run
from .._loops import copy, fill
from ._elementwise import soft_threshold, sum_abs

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 16  # rows


@validated(lam=non_negative, l1=non_negative)
class FusedLasso(NamedTuple):
    r"""The fused lasso, :math:`\lambda \sum_j |w_j - w_{j+1}| + \lambda_1 \sum_j |w_j|`: a piecewise constant answer.

    The prox denoises by one-dimensional total variation at :math:`\eta\lambda`, exactly and in linear time, then
    soft-thresholds at :math:`\eta\lambda_1`. On a p x q parameter each column is fused along the rows.

    Parameters
    ----------
    lam : float
        The strength of the differences.
    l1 : float, default 0.0
        The strength of the L1 part.

    References
    ----------
    The order of the two steps: Friedman, Hastie, Höfling, Tibshirani, Pathwise coordinate optimization, Annals of
    Applied Statistics 1 (2007). The scan: Condat, A direct algorithm for 1-D total variation denoising, IEEE Signal
    Processing Letters 20 (2013). The taut string: Davies, Kovac, Local extremes, runs, strings and multiresolution,
    Annals of Statistics 29 (2001).

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.prox(ds.FusedLasso(1.0), [0.0, 1.0, 5.0, 6.0], step=1.0)
    array([1., 1., 5., 5.])
    """

    lam: float
    l1: float = 0.0

    def value(self, w: Array) -> float:
        """Return the regulariser's value."""
        total = 0.0
        rows = w.reshape(w.shape[0], w.size // max(1, w.shape[0]))
        for j in range(1, rows.shape[0]):
            for k in range(rows.shape[1]):
                total += abs(rows[j, k] - rows[j - 1, k])
        return self.lam * total + self.l1 * sum_abs(w)

    def prox(self, v: Array, step: float, out: Array) -> None:
        """Denoise each column, then soft-threshold."""
        if v.ndim == 1:
            denoise(v, step * self.lam, out)
        else:
            column, result = np.empty(v.shape[0], v.dtype), np.empty(v.shape[0], v.dtype)
            for k in range(v.shape[1]):
                for j in range(v.shape[0]):
                    column[j] = v[j, k]
                denoise(column, step * self.lam, result)
                for j in range(v.shape[0]):
                    out[j, k] = result[j]
        if self.l1 > 0.0:
            soft_threshold(out, step * self.l1, out)

    def ball_scale(self, v: Array) -> float:
        """Return the largest factor up to 1 that brings v into the ball of the dual norm, which there is with an L1 part.

        In it are the sums of a slope from -l1 to l1 for every entry, and of differences of heights from -lam to lam that
        begin and end at zero.
        """
        rows = np.ascontiguousarray(v.reshape(len(v), -1), dtype=np.float64)
        return float(run(scale_into_ball, rows, self.lam, self.l1))

    def lam_max(self, gradient: Array) -> float:
        """Return the smallest strength whose answer is constant, given the gradient at the best constant.

        If that constant is not zero, the L1 part has one slope, which centring removes. At zero every slope from -l1 to
        l1 is allowed: the string's heights then change from one entry to the next by the gradient, give or take l1.
        """
        slopes = gradient.reshape(len(gradient), -1).astype(np.float64, copy=False)
        mean = slopes.mean(axis=0)
        at_zero = np.abs(mean) < (1.0 - 1e-6) * self.l1
        give, drift = np.where(at_zero, self.l1, 0.0), np.where(at_zero, 0.0, mean)
        sums = np.zeros(slopes.shape[1])
        top_fast = top_slow = np.full(sums.shape, -np.inf)  # the largest and the smallest heights so far
        low_fast = low_slow = np.full(sums.shape, np.inf)
        across = 0.0
        for start in range(0, len(slopes), _BLOCK):  # all at once would be several copies
            block = slopes[start : start + _BLOCK] - drift
            block[0] += sums
            heights = block.cumsum(axis=0)
            sums = heights[-1]
            fastest = heights + give * np.arange(start + 1, start + len(heights) + 1)[:, None]
            slowest = 2.0 * heights - fastest
            last = fastest[-1], slowest[-1]
            if start + _BLOCK >= len(slopes):
                fastest, slowest = fastest[:-1], slowest[:-1]
            if len(fastest):
                # Going from one side to the other in between.
                highest = np.maximum(np.maximum.accumulate(fastest), top_fast)
                lowest = np.minimum(np.minimum.accumulate(slowest), low_slow)
                across = np.max([across, 0.5 * (highest - fastest).max(), 0.5 * (slowest - lowest).max()])  # NaN stays NaN
                top_fast, low_slow = highest[-1], lowest[-1]
                low_fast = np.minimum(low_fast, fastest.min(axis=0))
                top_slow = np.maximum(top_slow, slowest.max(axis=0))
        bounds = [
            top_slow,  # coming from height 0 at the start
            -low_fast,
            top_fast - last[0],  # going to height 0 at the end
            last[1] - low_slow,
        ]
        return float(np.max([across, *(bound.max(initial=0.0) for bound in bounds)]))

    def prox_cost(self, shape: tuple[int, ...]) -> float:
        """Return how many rows' gradients a prox costs: measured, for 200 to 5,000 coefficients."""
        return 12.0

    def subgradient_bound(self, shape: tuple[int, ...]) -> float:
        r"""Return :math:`2\lambda\sqrt{m - 1}`, plus :math:`\lambda_1\sqrt m` for the L1 part."""
        columns = math.prod(shape[1:])
        fused = 2.0 * self.lam * math.sqrt(max(shape[0] - 1, 0) * columns)
        return fused + self.l1 * math.sqrt(shape[0] * columns)


@kernel
def is_in_ball(v: Array, scale: float, lam: float, l1: float) -> bool:
    """Tell whether ``scale * v`` is in the ball: whether heights stay between -lam and lam and come back to zero."""
    for k in range(v.shape[1]):
        low, high = 0.0, 0.0  # the heights that can be reached
        for j in range(v.shape[0]):
            low, high = max(low + scale * v[j, k] - l1, -lam), min(high + scale * v[j, k] + l1, lam)
            if low > high:
                return False
        if low > 0.0 or high < 0.0:
            return False
    return True


@kernel
def scale_into_ball(v: Array, lam: float, l1: float) -> float:
    """Find the largest factor up to 1 that brings v into the ball, by bisection from below."""
    if is_in_ball(v, 1.0, lam, l1):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if is_in_ball(v, middle, lam, l1):
            low = middle
        else:
            high = middle
    return low


@kernel
def denoise(v: Array, threshold: float, out: Array) -> None:
    """Write the minimiser over u of ``||u - v||^2 / 2 + threshold * sum |u_j - u_(j+1)|`` to ``out``.

    Picture the running sums of v, a tube of this radius around them, and a string pulled taut from one end of the tube to
    the other: u are the string's slopes. Where the string bends it touches the tube: its height above the running sum is
    +threshold before a jump up and -threshold before a jump down.

    No entry moves by more than twice the threshold, so v jumps by more than four times the threshold only where u jumps,
    the same way. This fixes the string's height there, and the pieces in between are independent. In a stochastic step most
    pieces are single entries, which one pass without a branch takes care of; the others are scanned.
    """
    last = v.size - 1
    if last <= 0:
        copy(v, out)
        return
    before = 0.0  # the string's height where the entry starts
    for j in range(last):
        after = threshold if v[j + 1] > v[j] else -threshold
        out[j] = v[j] + (after - before)
        before = after
    out[last] = v[last] - before
    wide = 4.0 * threshold
    j = 0
    while j < last:
        if abs(v[j + 1] - v[j]) > wide:
            j += 1
            continue
        stop = j + 1  # the piece is v[j:stop + 1]
        while stop < last and not abs(v[stop + 1] - v[stop]) > wide:
            stop += 1
        enter = leave = 0.0
        if j > 0:
            enter = threshold if v[j] > v[j - 1] else -threshold
        if stop < last:
            leave = threshold if v[stop + 1] > v[stop] else -threshold
        if j == 0 and stop == last and threshold > enough(v):
            threshold = enough(v)  # a larger one has the same answer, but would drown v in rounding errors
        denoise_piece(v[j : stop + 1], threshold, enter, leave, out[j : stop + 1])
        j = stop + 1


@kernel
def enough(v: Array) -> float:
    """Return a threshold whose answer is constant: twice the farthest that running sums get from a straight line."""
    low = high = v[0]
    for j in range(1, v.size):
        low, high = min(low, v[j]), max(high, v[j])
    return 0.5 * v.size * (high - low)


@kernel
def denoise_piece(v: Array, threshold: float, enter: float, leave: float, out: Array) -> None:
    """Denoise between two fixed heights of the string.

    The scan is fast where segments are short but may look at the same entries again and again; once it has taken twice as
    many steps as it has settled entries, the taut string, which is linear whatever comes, does the rest. Neither relies on
    a comparison to stay inside the arrays.
    """
    done, enter = scan(v, threshold, enter, leave, out)
    if done < v.size:
        taut_string(v[done:], threshold, enter, leave, out[done:])


@kernel
def scan(v: Array, threshold: float, enter: float, leave: float, out: Array) -> tuple[int, float]:
    """Write segments to ``out`` until the end or until the steps are used up.

    Returns how many entries are final, and the string's height there.
    """
    last = v.size - 1
    steps = 0
    start = 0  # of the segment in progress
    while True:
        low, high = v[start] - threshold - enter, v[start] + threshold - enter  # the segment's value lies between these
        at = low_until = high_until = start  # where the string touches the tube's side if it follows low, high
        under_low, under_high = threshold, -threshold  # depth of the string below the running sum, following low, high
        while True:
            if at == last:  # the string must end at its prescribed height
                jump = 0
                if under_low < -leave:
                    jump = -1
                elif under_high > -leave:
                    jump = 1
                break
            under_low += v[at + 1] - low
            under_high += v[at + 1] - high
            if under_low < -threshold:
                jump = -1
                break
            if under_high > threshold:
                jump = 1
                break
            at += 1
            if under_low >= threshold:
                low_until = at
                low += (under_low - threshold) / (at - start + 1)
                under_low = threshold
            if under_high <= -threshold:
                high_until = at
                high += (under_high + threshold) / (at - start + 1)
                under_high = -threshold
        if jump == 0:
            fill(out[start:], low + (under_low + leave) / (at - start + 1))
            return v.size, leave
        steps += at - start + 1
        if steps > 2 * start + 256:
            return start, enter
        until = low_until if jump < 0 else high_until
        value = low if jump < 0 else high
        for j in range(start, until + 1):
            out[j] = value
        start = until + 1
        enter = jump * threshold
        if start > last:  # only if rounding or NaN put the touching point at the very end
            return v.size, leave


@kernel
def taut_string(v: Array, threshold: float, enter: float, leave: float, out: Array) -> None:
    """Write the slopes of the string between two fixed heights to ``out``.

    From the string's last fixed point two paths are kept as stacks of straight pieces: the lowest concave path above the
    lower side, and the highest convex path below the upper side. Where their first pieces cross, the string is fixed along
    the other path. Pieces only ever merge, so their lengths always add up to what is left: no index depends on rounding.
    """
    # One block of memory, because the allocator gives several small ones back to the system and fetches them every time.
    stacks = np.empty((4, v.size))
    below_n, below_sum, above_n, above_sum = stacks[0], stacks[1], stacks[2], stacks[3]
    below_first = above_first = start = 0
    below_last = above_last = -1
    for i in range(v.size):
        # Both sides of the tube rise by v[i], but for where they leave the string's start and meet at its end.
        from_low, from_high = (-threshold, threshold) if i > 0 else (enter, enter)
        to_low, to_high = (-threshold, threshold) if i < v.size - 1 else (leave, leave)
        # The upper side: slopes must increase, merge pieces until they do.
        n, total = 1.0, v[i] + (to_high - from_high)
        while above_last >= above_first and above_sum[above_last] * n >= total * above_n[above_last]:
            n += above_n[above_last]
            total += above_sum[above_last]
            above_last -= 1
        above_last += 1
        while (
            above_last == above_first
            and below_first <= below_last
            and n > below_n[below_first]
            and below_sum[below_first] * n > total * below_n[below_first]
        ):
            start = fix_piece(below_n, below_sum, below_first, start, out)
            n -= below_n[below_first]
            total -= below_sum[below_first]
            below_first += 1
        above_n[above_last], above_sum[above_last] = n, total
        # The lower side, likewise: slopes must decrease.
        n, total = 1.0, v[i] + (to_low - from_low)
        while below_last >= below_first and below_sum[below_last] * n <= total * below_n[below_last]:
            n += below_n[below_last]
            total += below_sum[below_last]
            below_last -= 1
        below_last += 1
        while (
            below_last == below_first
            and above_first <= above_last
            and n > above_n[above_first]
            and above_sum[above_first] * n < total * above_n[above_first]
        ):
            start = fix_piece(above_n, above_sum, above_first, start, out)
            n -= above_n[above_first]
            total -= above_sum[above_first]
            above_first += 1
        below_n[below_last], below_sum[below_last] = n, total
    while below_first <= below_last:
        start = fix_piece(below_n, below_sum, below_first, start, out)
        below_first += 1


@kernel
def fix_piece(lengths: Array, sums: Array, piece: int, start: int, out: Array) -> int:
    """Write one straight piece to ``out`` and return where the next one starts."""
    stop = start + int(lengths[piece])
    value = sums[piece] / lengths[piece]
    for j in range(start, stop):
        out[j] = value
    return stop
