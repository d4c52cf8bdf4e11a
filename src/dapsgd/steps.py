"""Step-sizes: how long a step is at master iteration t.

Every rule is data, five numbers, so that one compiled function serves all of them: the step at iteration t is
``scale / (offset + slope * t)``, and with a finite ``budget`` the steps in flight must not add up to more.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ._checks import non_negative, number, positive, positive_integer, validated
from ._jit import kernel

__all__ = [
    "Constant",
    "DelayAdaptive",
    "InverseTime",
    "StepRule",
    "Theorem1",
    "Theorem2",
    "allowed_step",
    "longest_step",
    "settling",
    "shortened",
    "step_at",
]


class StepRule(NamedTuple):
    """What every step rule comes down to."""

    scale: float
    offset: float
    slope: float
    budget: float = math.inf
    share: float = 1.0


def shortened(rule: StepRule, factor: float) -> StepRule:
    """Return the rule with all steps times a factor."""
    return rule._replace(scale=rule.scale * factor, budget=rule.budget * factor)


def longest_step(smoothness: float, dtype: Any) -> float:
    """Return ``1 / L``; 1 where nothing bends, and never more than a number of this type can hold.

    Examples
    --------
    >>> longest_step(4.0, float), longest_step(0.0, float)
    (0.25, 1.0)
    """
    return 1.0 if smoothness == 0.0 else 1.0 / max(smoothness, float(np.finfo(dtype).tiny))


def settling(eta: float, max_delay: int) -> StepRule:
    r"""Return a constant step that is cut for late updates so that what the prox pins comes to rest.

    Where the prox of every worker gives the same value :math:`v`, zero for a coordinate that is to be zero, an update with
    delay d and factor c is :math:`x_{t+1} = x_t + c\,(v - x_{t-d})`, however short the step. That settles at v only if
    :math:`c < 2 \sin(\pi / (4d + 2))`; with c = 1 it circles for d = 1 and grows for d = 2. A budget B of steps in
    flight gives c = B / (1 + d) when all delays are d, which stays below if B does below :math:`\tfrac\pi2 (d+1)/(d+\tfrac12)`.
    """
    budget = 1.4 * (max_delay + 1.0) / (max_delay + 0.5)
    return StepRule(eta, 1.0, 0.0, budget * eta)


@kernel
def step_at(rule: StepRule, t: int) -> float:
    """Return the step-size of iteration t."""
    return rule.scale / (rule.offset + rule.slope * t)


@kernel
def allowed_step(rule: StepRule, spent: float) -> float:
    """Return the longest step allowed after steps that add up to ``spent`` were taken since the parameter was read."""
    return rule.share * max(rule.budget - spent, 0.0)


@validated(eta=positive)
class Constant(NamedTuple):
    """The same step at every iteration.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.Constant(0.1)
    Constant(eta=0.1)
    """

    eta: float

    def rule(self, lipschitz: float) -> StepRule:
        """Return the numbers behind this rule."""
        return StepRule(self.eta, 1.0, 0.0)


@validated(u=positive, c=non_negative)
class InverseTime(NamedTuple):
    """The paper's decreasing step, ``1 / (u + c*t)``.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.InverseTime(2e5, 200.0)
    InverseTime(u=200000.0, c=200.0)
    """

    u: float
    c: float

    def rule(self, lipschitz: float) -> StepRule:
        """Return the numbers behind this rule."""
        return StepRule(1.0, self.u, self.c)


@validated(mu=positive, u=number)
class Theorem1(NamedTuple):
    """Theorem 1's decreasing step, ``1 / (mu*(t + 1) + u)``.

    Parameters
    ----------
    mu : float
        The strong convexity of f.
    u : float
        Larger than ``(2*max_delay - 1) * mu``, and large enough for the theorem's bound on the first step.
    """

    mu: float
    u: float

    def rule(self, lipschitz: float) -> StepRule:
        """Return the numbers behind this rule."""
        if not 0.0 < self.mu + self.u < math.inf:
            raise ValueError(f"Theorem1: mu + u must be finite and > 0; got {self.mu + self.u}")
        return StepRule(1.0, self.mu + self.u, self.mu)


@validated(v=positive, T=positive_integer)
class Theorem2(NamedTuple):
    """Theorem 2's constant step, ``1 / (v * sqrt(T))``, for the running average of T iterations.

    Parameters
    ----------
    v : float
        Large enough for the theorem's bound on the step.
    T : int
        The number of iterations that will be run.
    """

    v: float
    T: int

    def rule(self, lipschitz: float) -> StepRule:
        """Return the numbers behind this rule."""
        return StepRule(1.0, self.v * math.sqrt(self.T), 0.0)


@validated(share=positive)
class DelayAdaptive(NamedTuple):
    """Another rule, cut so that the steps in flight stay inside a budget.

    An update that was read d iterations ago is scaled so that its step is at most ``share`` times what the steps taken
    since then have left of the budget. A straggler's late update is short; punctual ones are not punished for it.

    Parameters
    ----------
    step : Constant, InverseTime, Theorem1 or Theorem2, optional
        The rule to cut; by default the whole budget at every iteration.
    budget : float, optional
        By default ``1/L``, with L the smoothness of f.
    share : float, default 0.9
        In (0, 1].

    References
    ----------
    Wu, Magnusson, Feyzmahdavian, Johansson: Delay-adaptive step-sizes for asynchronous learning. ICML 2022.

    Examples
    --------
    >>> import dapsgd as ds
    >>> ds.DelayAdaptive(ds.Constant(0.1), budget=0.2).share
    0.9
    """

    step: Any = None
    budget: float | None = None
    share: float = 0.9

    def rule(self, lipschitz: float) -> StepRule:
        """Return the numbers behind this rule."""
        if not self.share <= 1.0:
            raise ValueError(f"DelayAdaptive: share must be at most 1; got {self.share}")
        if self.budget is not None:
            budget = positive("DelayAdaptive: budget", self.budget)
        elif 0.0 < lipschitz < math.inf:
            budget = 1.0 / lipschitz
        else:
            raise ValueError("DelayAdaptive: budget must be given, because this problem's smoothness has no bound")
        if self.step is None:
            return StepRule(budget, 1.0, 0.0, budget, self.share)
        if not isinstance(self.step, (Constant, InverseTime, Theorem1, Theorem2)):
            raise TypeError(f"DelayAdaptive: step must be Constant, InverseTime, Theorem1 or Theorem2; got {self.step!r}")
        return self.step.rule(lipschitz)._replace(budget=budget, share=self.share)
