"""``reproduce``: run the experiments, check the claims, draw the pictures, write the report."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._checks import known_name, positive_integer
from ..errors import DapsgdError
from ..plots import pyplot, save
from ..runtimes._plan import available_cores
from ._tasks import Claim, Numbers, Part, Settings, Store, Task, write_text
from .delays import DELAYS, REAL
from .figure1 import FIGURE1
from .figure2 import FIGURE2
from .rates import RATES
from .report import Section, write_report

__all__ = ["PARTS", "reproduce"]

PARTS: dict[str, Part] = {part.name: part for part in (FIGURE1, FIGURE2, RATES, DELAYS, REAL)}


def reproduce(
    what: str = "all",
    folder: Any = "reproduced",
    settings: Settings = Settings(),  # noqa: B008  # it is frozen
    *,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> list[Claim]:
    """Run one part or all, and return the claims that were checked.

    Tasks that an earlier run with the same settings has finished are not run again.

    Parameters
    ----------
    what : str
        ``"figure1"``, ``"figure2"``, ``"rates"``, ``"delays"``, ``"real"`` or ``"all"``.
    folder : path
        Where to keep numbers, pictures and the report.
    settings : Settings
    progress : bool
        Show a progress bar with the time that is left.
    say : callable
        Gets a line now and then about what is going on.
    """
    known_name("what", what, [*PARTS, "all"])
    positive_integer("seeds", settings.seeds)
    settings = replace(settings, workers=settings.workers or available_cores())
    if settings.data and not Path(settings.data).is_file():
        raise DapsgdError(f"there is no file {settings.data}")
    pyplot().switch_backend("agg")  # say at once if matplotlib is missing; no window is needed
    parts = list(PARTS.values()) if what == "all" else [PARTS[what]]
    store = Store(Path(folder), settings)
    began = time.perf_counter()
    tasks = [task for part in parts for task in part.tasks(settings)]
    _run(tasks, store, progress, say)
    sections = [_section(part, store, settings) for part in parts]
    claims = [claim for section in sections for claim in section.claims]
    seconds = time.perf_counter() - began
    _write_claims(store.folder, claims)
    about = {**store.about["machine"], "seeds": settings.seeds, "workers": settings.workers, "data": settings.data or "bundled"}
    write_report(store.folder / "report.html", sections, settings, about, seconds)
    return claims


def _run(tasks: Sequence[Task], store: Store, progress: bool, say: Callable[[str], None]) -> None:
    """Run the tasks that are not done yet."""
    open_tasks = [task for task in tasks if store.get(task.key) is None]
    if len(open_tasks) < len(tasks):
        say(f"{len(tasks) - len(open_tasks)} of {len(tasks)} tasks were done before")
    bar: Any = None
    if progress and open_tasks:
        from tqdm.auto import tqdm

        total = sum(task.seconds for task in open_tasks)
        bar = tqdm(total=total, bar_format="{l_bar}{bar}| {elapsed} of about {elapsed} + {remaining}{postfix}")
    try:
        for task in open_tasks:
            if bar is not None:
                bar.set_postfix_str(task.key)
            store.put(task.key, task.run())
            if bar is not None:
                bar.update(task.seconds)
    finally:
        if bar is not None:
            bar.close()


def _section(part: Part, store: Store, settings: Settings) -> Section:
    """Check a part's claims and draw its pictures, as PNG and SVG."""

    def get(key: str) -> Numbers:
        return store[key]

    pictures = []
    for name, (figure, caption) in part.draw(settings, get).items():
        for ending in ("png", "svg"):
            save(figure, store.folder / f"{name}.{ending}")
        pyplot().close(figure)
        pictures.append((store.folder / f"{name}.svg", caption))
    return Section(part.title, part.claims(settings, get), pictures)


def _write_claims(folder: Path, claims: Sequence[Claim]) -> None:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(Claim._fields)
    table.writerows(claims)
    write_text(folder / "claims.csv", text.getvalue())
    write_text(folder / "claims.json", json.dumps([claim._asdict() for claim in claims], indent=1) + "\n")
