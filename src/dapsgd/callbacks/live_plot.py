"""A picture of the run while it runs."""

from __future__ import annotations

import math
import time
from typing import Any

from .._checks import known_name, non_negative
from .._monitor import Checkup
from .._progress import in_notebook
from ..plots import check_picture, plot_progress, pyplot, save
from ..result import Trace
from .logs import numbers_of

__all__ = ["LivePlot"]


class LivePlot:
    """Draw one column of the trace against another, again and again while the run goes on.

    In a notebook the picture is replaced in place. With a window (an interactive backend of matplotlib) it is redrawn there.
    Without either, on a server say, give a ``path``: the file is replaced at every drawing.

    Parameters
    ----------
    y, x : str, default "objective" and "seconds"
        Columns of :class:`dapsgd.Trace`. The objective is drawn less the lowest so far, on a logarithmic axis.
    path : path, optional
        Where to save the picture; its ending chooses the format, PNG if it has none.
    every : float, default 0.5
        Seconds of your time between two drawings, at least; the end is always drawn.

    Attributes
    ----------
    figure : matplotlib.figure.Figure

    Examples
    --------
    >>> import dapsgd as ds
    >>> import numpy as np
    >>> live = ds.callbacks.LivePlot("residual", "passes")
    >>> problem = ds.Problem(np.eye(4), np.arange(4.0), regularizer=ds.L1(0.1))
    >>> run = ds.solve(problem, "p-sgd", max_iter=20, record_every=5, tol=0, seed=0, callbacks=[live])
    >>> live.close()
    """

    def __init__(self, y: str = "objective", x: str = "seconds", *, path: Any = None, every: float = 0.5) -> None:
        self.y, self.x = known_name("LivePlot: y", y, Trace.columns()), known_name("LivePlot: x", x, Trace.columns())
        if path is not None:
            check_picture(path, "LivePlot: path")
        self.path, self.every = path, non_negative("LivePlot: every", every)
        self._plt = pyplot()
        self.figure: Any = None
        self._place: Any = None  # in a notebook, what is replaced
        self._points: list[tuple[float, ...]] = []
        self._drawn = -float("inf")  # when, and how many points
        self._shown = 0

    def __call__(self, now: Checkup) -> None:
        """Take a point, and draw if it is time."""
        if now.iteration == 0:
            self._points, self._shown = [], 0
        self._points.append(tuple(numbers_of(now).values()))
        if time.monotonic() - self._drawn >= self.every:
            self.draw()

    def finish(self) -> None:
        """Draw what was not drawn yet; the run has ended."""
        if len(self._points) > self._shown:
            self.draw()

    def draw(self) -> None:
        """Draw all points so far."""
        if self.figure is None:
            self.figure = self._plt.figure(figsize=(5.0, 3.4), layout="constrained")
            if in_notebook():
                self._plt.close(self.figure)  # or the notebook would show it once more when the cell ends
        self.figure.clear()
        ax, trace = self.figure.add_subplot(), Trace.from_points(self._points)
        plot_progress(trace, y=self.y, x=self.x, ax=ax, objective=math.inf, gap=math.nan)  # which are not known yet
        self._show()
        if self.path is not None:
            save(self.figure, self.path)
        self._drawn, self._shown = time.monotonic(), len(self._points)

    def _show(self) -> None:
        if in_notebook():
            from IPython.display import display

            if self._place is None:
                self._place = display(self.figure, display_id=True)
            else:
                self._place.update(self.figure)
        elif self._plt.isinteractive() or _has_window(self.figure):
            self._plt.show(block=False)
            self.figure.canvas.draw_idle()
            self.figure.canvas.flush_events()

    def close(self) -> None:
        """Close the figure."""
        if self.figure is not None:
            self._plt.close(self.figure)

    def __repr__(self) -> str:
        return f"LivePlot({self.y!r}, {self.x!r})"


def _has_window(figure: Any) -> bool:
    return getattr(figure.canvas, "required_interactive_framework", None) is not None
