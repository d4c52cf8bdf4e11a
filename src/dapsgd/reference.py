"""The paper in plain NumPy: P-SGD, TAP-SGD and DAP-SGD. Read this first. It is also what the fast code is tested against.

Li, Xu, Zhong, Ling: Make Workers Work Harder: Decoupled Asynchronous Proximal Stochastic Gradient Descent.

Everywhere below ``grad(x, i)`` is the gradient of f_i at x (or the mean over a mini-batch i), ``prox(v, eta)`` is the
proximal operator of h, ``eta(t)`` is the step-size, ``samples[t]`` is the sample i_t, and ``read[t]`` is d(t): the version of
the parameter that the update of iteration t was computed from. ``t - read[t]`` is its delay.

>>> import numpy as np
>>> def grad(x, i):
...     return 2.0 * (x - np.array([3.0, 0.1])[i])
>>> def prox(v, eta):
...     return np.sign(v) * np.maximum(np.abs(v) - eta * 0.5, 0.0)
>>> x = p_sgd(grad, prox, lambda t: 0.1, np.zeros(1), samples=[0] * 100)
>>> float(x[0].round(6))
2.75
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["dap_sgd", "p_sgd", "running_average", "tap_sgd"]

Array = np.ndarray[Any, Any]
Gradient = Callable[[Array, Any], Array]
Prox = Callable[[Array, float], Array]
Step = Callable[[int], float]


def p_sgd(grad: Gradient, prox: Prox, eta: Step, x0: Array, samples: Sequence[Any]) -> Array:
    """Proximal stochastic gradient descent, Equation (2)."""
    x = x0
    for t, i in enumerate(samples):
        x = prox(x - eta(t) * grad(x, i), eta(t))
    return x


def tap_sgd(grad: Gradient, prox: Prox, eta: Step, x0: Array, samples: Sequence[Any], read: Sequence[int]) -> list[Array]:
    """Traditional asynchronous P-SGD, Equation (3) and Algorithm 1: the master runs the prox. Returns x_0, ..., x_T."""
    x = [x0]
    for t, i in enumerate(samples):
        g = grad(x[read[t]], i)  # the worker, with the version it has read
        x.append(prox(x[t] - eta(t) * g, eta(t)))  # the master, with its own step-size
    return x


def dap_sgd(grad: Gradient, prox: Prox, eta: Step, x0: Array, samples: Sequence[Any], read: Sequence[int]) -> list[Array]:
    """Decoupled asynchronous P-SGD, Equation (8) and Algorithm 2: the worker runs the prox. Returns x_0, ..., x_T."""
    x = [x0]
    for t, i in enumerate(samples):
        d = read[t]
        x_prime = prox(x[d] - eta(d) * grad(x[d], i), eta(d))  # the worker, with the step-size it has read along with x
        x.append(x[t] + (x_prime - x[d]))  # the master only adds
    return x


def running_average(x: Sequence[Array]) -> Array:
    """Theorem 2's average of all iterates x_0, ..., x_T."""
    return np.mean(np.stack(x), axis=0)
