"""One HTML page with everything on it: claims, pictures, the machine. It needs no network."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._files import write_text
from ._tasks import Claim, Settings

__all__ = ["Section", "claims_text", "write_report"]

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .4rem .7rem; }
th { border-bottom: 2px solid #999; } td { border-bottom: 1px solid #ddd; }
.yes { color: #00614a; font-weight: 600; } .no { color: #a33c00; font-weight: 600; } .as { color: #555; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: #444; font-size: .92rem; }
code { background: #f3f3f3; padding: 0 .25rem; } @media print { body { font-size: 11px; } figure { break-inside: avoid; } }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; padding: .4rem 0; border-bottom: 1px solid #ddd; }
  td { display: block; padding: 0; border: 0; } td:first-child { font-weight: 600; }
}
"""

VERDICT = {True: ("yes", "holds"), False: ("no", "does not hold"), None: ("as", "as it is")}


class Section(NamedTuple):
    """One part of the report."""

    title: str
    claims: list[Claim]
    pictures: list[tuple[Path, str]]  # an SVG file and its caption


def claims_text(claims: Sequence[Claim]) -> str:
    """Return the claims as lines of text."""
    return "\n".join(f"[{VERDICT[claim.holds][1]:^13}] {claim.name}: {claim.measured}" for claim in claims)


def write_report(path: Path, sections: Sequence[Section], settings: Settings, machine: dict[str, Any], seconds: float) -> None:
    """Write the page."""
    every = [claim for section in sections for claim in section.claims]
    failed = sum(claim.holds is False for claim in every)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>DAP-SGD, reproduced</title><style>{STYLE}</style></head><body>",
        "<h1>Decoupled asynchronous proximal SGD, reproduced</h1>",
        f"<p>{len(every)} claims were looked at; <b>{failed} do{'es' * (failed == 1)} not hold</b> on this machine. "
        f"{'A quick run: fewer iterations than the paper’s. ' * settings.quick}"
        f"Medians over {settings.seeds} seeds, {settings.workers} workers, {seconds:.0f} seconds.</p>",
        "<table><thead><tr><th>claim</th><th>the paper</th><th>here</th><th></th></tr></thead><tbody>",
    ]
    for claim in every:
        mark, word = VERDICT[claim.holds]
        cells = "".join(f"<td>{html.escape(text)}</td>" for text in (claim.name, claim.paper, claim.measured))
        parts.append(f"<tr>{cells}<td class='{mark}'>{word}</td></tr>")
    parts.append("</tbody></table>")
    for section in sections:
        parts.append(f"<h2>{html.escape(section.title)}</h2>")
        for picture, caption in section.pictures:
            code = base64.b64encode(picture.read_bytes()).decode("ascii")
            text = html.escape(caption)
            parts.append(
                f"<figure><img alt='{html.escape(section.title, quote=True)}' src='data:image/svg+xml;base64,{code}'>"
                f"<figcaption>{text}</figcaption></figure>"
            )
    rows = "".join(f"<tr><td>{html.escape(str(k))}</td><td>{html.escape(str(v))}</td></tr>" for k, v in machine.items())
    parts.append(f"<h2>The machine</h2><table><tbody>{rows}</tbody></table>")
    parts.append("<p>The numbers behind the pictures are in <code>raw/</code> and <code>claims.csv</code>.</p></body></html>")
    write_text(path, "\n".join(parts) + "\n")
