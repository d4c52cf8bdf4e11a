"""Check a built site: every internal link and every figure is there, and no page loads anything from the network.

python docs/check_site.py docs/_build/html
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {"img": ("src", "srcset"), "script": ("src",), "iframe": ("src",), "source": ("src", "srcset"), "object": ("data",)}
LINKED = ("stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch")


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places = {"", "top"}
        self.style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of addresses and of places."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and set(given.get("rel", "").split()) & set(LINKED):
            self.loads.append(given.get("href", ""))
        for name in LOADS.get(tag, ()):
            if name in given:
                pieces = given[name].split(",") if name == "srcset" else [given[name]]
                self.loads += [piece.split()[0] for piece in pieces if piece.strip()] if name == "srcset" else pieces
        self.loads += styled(given.get("style", ""))
        self.style = tag == "style"

    def handle_data(self, data: str) -> None:
        """Look into style sheets that are in the page."""
        if self.style:
            self.loads += styled(data)

    def handle_endtag(self, tag: str) -> None:
        """Leave a style sheet."""
        self.style = False


def styled(css: str) -> list[str]:
    """Return what a style sheet loads."""
    found: list[str] = re.findall(r"""url\(\s*["']?([^"')]+)["']?\s*\)""", css)
    return found + re.findall(r"""@import\s+["']([^"']+)["']""", css)


def problems(site: Path) -> Iterator[str]:
    """Find what is wrong, one sentence each."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]  # a template of the theme is there
    pages = {path.resolve(): Page(path) for path in files}
    if not pages:
        yield f"there is no page in {site}"
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for address in page.links:
            yield from wrong_link(site, where, path, address, pages)
        for address in page.loads:
            yield from wrong_load(where, path, address)
    for path in sorted(site.rglob("*.css")):
        for address in styled(path.read_text(encoding="utf-8")):
            yield from wrong_load(path.relative_to(site), path.resolve(), address)


def wrong_link(site: Path, where: Path, path: Path, address: str, pages: dict[Path, Page]) -> Iterator[str]:
    """Find out whether a link leads nowhere; links to other sites are not followed."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    target = target / "index.html" if target.is_dir() else target
    if not target.exists():
        yield f"{where}: the link {address} leads nowhere"
    elif target in pages and unquote(parts.fragment) not in pages[target].places:
        yield f"{where}: the link {address} leads to a page without that place"


def wrong_load(where: Path, path: Path, address: str) -> Iterator[str]:
    """Find out whether something that is loaded is missing, empty, or elsewhere."""
    parts = urlsplit(address)
    if parts.scheme == "data" or (not parts.path and parts.fragment):
        return
    if parts.scheme or parts.netloc:
        yield f"{where}: loads {address} from the network"
        return
    target = (path.parent / unquote(parts.path)).resolve()
    if not target.is_file():
        yield f"{where}: {address} is missing"
    elif target.stat().st_size == 0:
        yield f"{where}: {address} is empty"


def main() -> None:
    """Print what is wrong and fail if anything is."""
    site = Path(sys.argv[1])
    found = list(problems(site))
    print("\n".join(found))
    print(f"{site}: {len(found) or 'no'} problem{'s' * (len(found) != 1)}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
