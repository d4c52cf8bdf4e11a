"""The command line: ``dapsgd demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Regularised linear models by decoupled asynchronous proximal stochastic gradient descent.",
)


def _version(show: bool) -> None:
    if show:
        from . import __version__

        typer.echo(f"dapsgd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Options for all commands."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture; its ending chooses the format.")] = Path("demo.png"),
    workers: Annotated[int | None, typer.Option(min=1, help="Workers; all cores by default.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and of the runs.")] = 0,
) -> None:
    """Fit the paper's fused-lasso and nuclear-norm objectives with TAP-SGD and DAP-SGD.

    Prints a table and saves a picture of the distance to the optimum against time and iterations.
    """
    from . import demo as demonstration
    from .plots import save

    if not out.parent.is_dir():
        raise typer.BadParameter(f"the folder {out.parent} does not exist", param_hint="--out")
    try:
        rows = demonstration.run(workers=workers, seed=seed, say=lambda line: typer.echo(line, err=True))
        typer.echo(demonstration.table(rows))
        save(demonstration.picture(rows), out)
    except ImportError as error:
        raise typer.BadParameter(str(error), param_hint="demo") from None
    except (OSError, ValueError) as error:
        typer.echo(f"cannot save the picture to {out}: {error}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"picture: {out}")


def main() -> None:
    """Run the command line; Ctrl-C ends it with status 130, without a traceback."""
    try:
        app()
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
