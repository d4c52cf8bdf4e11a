"""The errors of this package that are not a plain ``ValueError`` or ``TypeError``."""

__all__ = [
    "CheckpointError",
    "ClusterError",
    "CompilationError",
    "DapsgdError",
    "DivergenceError",
    "FileFormatError",
    "NumbersTooLargeError",
    "OutOfMemoryError",
]


class DapsgdError(Exception):
    """The family of errors that only this package raises."""


class CheckpointError(DapsgdError, ValueError):
    """A checkpoint that cannot be gone on from: damaged, or of another problem, run or version; the sentence says which."""


class ClusterError(DapsgdError, RuntimeError):
    """A cluster that cannot be reached, is too small, or lost what a run cannot go on without."""


class CompilationError(DapsgdError, TypeError):
    """A loss or regulariser of your own that numba could not compile; the sentence says why."""


class DivergenceError(DapsgdError, ArithmeticError):
    """A run whose iterates grew without bound; the step was too long.

    Attributes
    ----------
    iteration : int
        The master iteration at which it was noticed.
    suggested_step : float
        A constant step-size that is safe for this problem, batch size and delay.
    """

    def __init__(self, iteration: int, suggested_step: float) -> None:
        self.iteration = iteration
        self.suggested_step = suggested_step
        super().__init__(
            f"the run diverged: noticed at iteration {iteration}. The step is too long for this problem; "
            f"try step=dapsgd.Constant({suggested_step:.3g}) or shorter, or step=None for an automatic one"
        )

    def __reduce__(self) -> tuple[type["DivergenceError"], tuple[int, float]]:
        """Pickle by the two numbers, not by the sentence."""
        return DivergenceError, (self.iteration, self.suggested_step)


class FileFormatError(DapsgdError, ValueError):
    """A file or folder that is damaged, or is not of the kind it should be; the sentence names it and says where."""


class NumbersTooLargeError(DapsgdError, ArithmeticError):
    """Data whose squares, or sums of them, are beyond the largest number of its type."""

    def __init__(self) -> None:
        super().__init__(
            "X, y, the weights or the strengths are too large: squares of them overflow. Divide the columns of X, and y, by "
            "their largest entries, which changes nothing but the units of the coefficients"
        )


class OutOfMemoryError(DapsgdError, MemoryError):
    """Something that would need more memory than there is; raised before any of it is taken, with the size."""
