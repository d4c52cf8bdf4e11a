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
from .._files import write_text
from .._progress import bar
from .._team import available_cores
from ..plots import pyplot, save
from ._busy import say_if_busy
from ._tasks import Claim, Numbers, Part, Settings, Store, Task
from .delays import DELAYS
from .figure1 import FIGURE1
from .figure2 import FIGURE2
from .rates import RATES
from .real import REAL, load_data
from .report import Section, write_report

__all__ = ["PARTS", "reproduce"]

PARTS: dict[str, Part] = {part.name: part for part in (FIGURE1, FIGURE2, RATES, DELAYS, REAL)}


def reproduce(
    what: str = "all",
    folder: Any = "reproduced",
    settings: Settings = Settings(),  # noqa: B008  # it is frozen
    *,
    again: bool = False,
    progress: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> list[Claim]:
    """Run one part or all, and return the claims that were checked.

    Tasks that an earlier run with the same settings has finished are not run again. The report shows every part that is
    finished in the folder; the claims that are returned are those of the parts asked for.

    Parameters
    ----------
    what : str
        ``"figure1"``, ``"figure2"``, ``"rates"``, ``"delays"``, ``"real"`` or ``"all"``.
    folder : path
        Where to keep numbers, pictures and the report.
    settings : Settings
    again : bool
        Run also what is finished.
    progress : bool
        Show a progress bar with the time that is left.
    say : callable
        Gets a line now and then about what is going on.
    """
    known_name("what", what, [*PARTS, "all"])
    positive_integer("seeds", settings.seeds)
    settings = replace(settings, workers=settings.workers or available_cores())
    if settings.data:
        load_data(settings.data)  # say at once what is wrong with it
    pyplot().switch_backend("agg")  # say at once if matplotlib is missing; no window is needed
    parts = list(PARTS.values()) if what == "all" else [PARTS[what]]
    store = Store(Path(folder), settings)
    began = time.perf_counter()
    tasks = [task for part in parts for task in part.tasks(settings)]
    say_if_busy(say, "--again measures anew")
    _run(tasks, store, again, progress, say)
    sections = {
        part.name: _section(part, store, settings)
        for part in PARTS.values()
        if all(store.get(task.key) is not None for task in part.tasks(settings))
    }
    seconds = time.perf_counter() - began
    _write_claims(store.folder, [claim for section in sections.values() for claim in section.claims])
    about = {**store.about["machine"], "seeds": settings.seeds, "workers": settings.workers, "data": settings.data or "bundled"}
    write_report(store.folder / "report.html", list(sections.values()), settings, about, seconds)
    return [claim for part in parts for claim in sections[part.name].claims]


def _run(tasks: Sequence[Task], store: Store, again: bool, progress: bool, say: Callable[[str], None]) -> None:
    """Run the tasks that are not done yet."""
    open_tasks = [task for task in tasks if again or store.get(task.key) is None]
    if len(open_tasks) < len(tasks):
        say(f"{len(tasks) - len(open_tasks)} of {len(tasks)} tasks were done before")
    shown: Any = None
    if progress and open_tasks:
        total = sum(task.seconds for task in open_tasks)
        text = "{l_bar}{bar}| {elapsed} of about {elapsed} + {remaining}{postfix}"
        shown = bar(total=total, desc="reproduce", unit="expected second", bar_format=text)
    try:
        for task in open_tasks:
            if shown is not None:
                shown.set_postfix_str(task.key)
            store.put(task.key, task.run())
            if shown is not None:
                shown.update(task.seconds)
    finally:
        if shown is not None:
            shown.close()


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
