"""The command line: ``dapsgd demo``, ``fit``, ``predict``, ``show``, ``simulate`` and ``reproduce``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from ._arguments import by_shell
from ._signals import no_signal_is_lost
from .errors import DapsgdError, DivergenceError
from .regularizers import REGULARIZERS

__all__ = ["app", "main"]


class _PlainHelp:
    """A command that shows its own option ``--help`` as it shows other flags: without the kind of a value."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option."""
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Group(_PlainHelp, TyperGroup):
    pass


class _Command(_PlainHelp, TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what was given, and refuse an option of one value that was given twice: nobody knows which one is meant."""
        try:
            order = [one for one in self.make_parser(ctx).parse_args(args=list(args))[2] if _takes_one_value(one)]
            twice = next((one for one in order if order.count(one) > 1), None)
            if twice is not None:
                raise _UsageError(f"{twice.opts[0]} must be given once; got it {order.count(twice)} times")
            return super().parse_args(ctx, args)
        except _UsageError as error:
            error.ctx = error.ctx or ctx  # so that the help of this command is pointed to
            raise


def _takes_one_value(option: Any) -> bool:
    return option.param_type_name == "option" and not option.is_flag and not option.multiple


app = typer.Typer(
    cls=_Group,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Regularised linear models by decoupled asynchronous proximal stochastic gradient descent.",
)
_command = partial(app.command, cls=_Command)
_UsageError: Any = typer.BadParameter.__base__  # of whatever parser typer brings


def _flag(*names: str, metavar: str = "", **options: Any) -> Any:
    """Return an option; unless it is given a ``metavar`` it takes no value, and is not shown as if it did."""
    return typer.Option(*names, metavar=metavar, **options)


_data, _output, _model, _strength, _solving = (
    partial(_flag, rich_help_panel=title)
    for title in ("The data", "What is written", "The model", "The strength of the penalty", "How it is solved")
)


class _NumberError(typer.BadParameter):
    """A value of an option that is no number, or not one of those allowed; it is said in words of ours."""

    def format_message(self) -> str:
        """Return the sentence, which begins with the option."""
        return f"{'a number' if self.param is None else self.param.opts[0]} must be {self.message}"


def _number(value: Any) -> float:
    """Return the value of an option as a number."""
    try:
        return float(value)
    except ValueError:
        comma = ", with a decimal point" if "," in value else ""
        raise _NumberError(f"a number{comma}; got {value!r}") from None


def _one_of_several(value: Any) -> float:
    """Return the value of an option that may be given again as a number."""
    if "," in str(value):
        raise _NumberError(f"a number, with a decimal point; got {value!r}: for several numbers give the option again for each")
    return _number(value)


def _whole(least: int) -> dict[str, Any]:
    """Return what makes an option one that takes a whole number which is at least so large."""

    def parse(value: Any) -> int:
        try:
            number = int(value)
        except ValueError:
            number = least - 1
        if number < least:
            raise _NumberError(f"a whole number, at least {least}; got {str(value)!r}")
        return number

    return {"parser": parse, "min": least}


_REAL: dict[str, Any] = {"parser": _number}


def _version(show: bool) -> None:
    if show:
        from . import __version__

        typer.echo(f"dapsgd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, _flag("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Options for all commands."""


@_command()
def demo(
    out: Annotated[Path, typer.Option(help="Where to save the picture; its ending chooses the format.")] = Path("demo.png"),
    workers: Annotated[
        int | None, typer.Option(metavar="COUNT", **_whole(1), help="Workers; one for each core by default.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", **_whole(0), help="Seed of the data and of the runs.")] = 0,
) -> None:
    """Fit the paper's fused-lasso and nuclear-norm objectives with TAP-SGD and DAP-SGD.

    Prints a table and saves a picture of the distance to the optimum against time and iterations.
    """
    from . import demo as demonstration
    from .experiments._busy import say_if_busy
    from .plots import check_picture, save

    with _explained():
        check_picture(out, "--out")
        say = partial(typer.echo, err=True)
        say_if_busy(say, "run it again when they have ended")
        rows = demonstration.run(workers=workers, seed=seed, say=say)
        typer.echo(demonstration.table(rows))
        save(demonstration.picture(rows), out)
    typer.echo(f"picture: {out}")


_FIT_EXAMPLES = """
Examples:

  dapsgd fit spectra.csv --target octane --penalty fused_lasso --alpha 0.01

  dapsgd fit spectra.csv --target octane --penalty fused_lasso --cv 5 --plot bands.png

  dapsgd fit genes.parquet --target tumour --penalty group_lasso --groups prefix:_

  dapsgd fit a9a.svm --loss logistic --penalty l1 --alpha 0.001 --out a9a.npz

  dapsgd fit river.csv --target now --target later --penalty nuclear

  dapsgd fit big.parquet --target y --checkpoint big.ckpt --resume

Exit status: 0 done; 1 the tolerance was not reached (the model is written all
the same) or the run failed; 2 a wrong call or a bad file; 130 interrupted.
"""
_PREDICT_EXAMPLES = """
Examples:

  dapsgd predict model.npz new.csv --out predictions.csv

  dapsgd predict model.npz new.csv --keep sample --keep tissue

  dapsgd predict tumour.npz patients.parquet --proba --out -

Predictions are in the order of the rows, below a title; --keep puts columns of the data before them, such as the name of a
sample.
"""
_Header = Annotated[bool | None, _flag("--header/--no-header", help="Whether a CSV file starts with names.")]
_ZeroBased = Annotated[bool | None, _flag("--zero-based/--one-based", help="The first index of an svmlight file.")]
_Json = Annotated[bool, _flag("--json", help="Print the summary as JSON.")]


@_command(epilog=_FIT_EXAMPLES)
def fit(
    data: Annotated[Path, typer.Argument(help="CSV, svmlight, NPY, NPZ, Parquet or Arrow; its ending says which.")],
    target: Annotated[
        list[str] | None,
        _data("--target", metavar="COLUMN", help="The target's column, by name or position (-1: the last); again for more."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        _data("--drop", metavar="COLUMN", help="A column to leave out, by name or position; again for more."),
    ] = None,
    skip_missing: Annotated[bool, _data("--skip-missing", help="Leave out rows in which a value is missing.")] = False,
    header: Annotated[bool | None, _data("--header/--no-header", help="Whether a CSV file starts with names.")] = None,
    decimal: Annotated[
        str | None, _data("--decimal", metavar="SIGN", help="The decimal sign of a CSV file: a comma, or a point, the default.")
    ] = None,
    encoding: Annotated[
        str | None, _data("--encoding", metavar="NAME", help="The encoding of a CSV file, such as cp1252; utf-8 by default.")
    ] = None,
    skip_lines: Annotated[
        int | None,
        _data("--skip-lines", metavar="COUNT", **_whole(0), help="Leave out so many lines at the top of a CSV file."),
    ] = None,
    zero_based: Annotated[bool | None, _data("--zero-based/--one-based", help="The first index of an svmlight file.")] = None,
    n_features: Annotated[
        int | None, _data("--n-features", metavar="COUNT", **_whole(1), help="The number of columns of an svmlight file.")
    ] = None,
    dtype: Annotated[str | None, _data("--dtype", metavar="NAME", help="float32 or float64.")] = None,
    convert: Annotated[
        bool | None, _data("--convert/--no-convert", help="Convert the data once; by default if over 50 MB.")
    ] = None,
    cache: Annotated[
        Path | None, _data("--cache", metavar="FOLDER", help="A folder for converted data; by default next to the file.")
    ] = None,
    out: Annotated[Path, _output("--out", metavar="FILE", help="Where to write the model.")] = Path("model.npz"),
    plot: Annotated[Path | None, _output("--plot", metavar="FILE", help="Where to save a picture of the coefficients.")] = None,
    plot_cv: Annotated[
        Path | None, _output("--plot-cv", metavar="FILE", help="With --cv: a picture of the scores along the strengths.")
    ] = None,
    plot_path: Annotated[
        Path | None, _output("--plot-path", metavar="FILE", help="With --cv: one of the coefficients along the strengths.")
    ] = None,
    progress: Annotated[
        bool, _output("--progress/--no-progress", help="Show progress: a bar on a terminal, else a line now and then.")
    ] = True,
    as_json: Annotated[bool, _output("--json", help="Print the summary as JSON.")] = False,
    task: Annotated[
        str, _model("--task", metavar="NAME", help="regression, classification, or auto: by the loss and the target.")
    ] = "auto",
    loss: Annotated[
        str | None,
        _model("--loss", metavar="NAME", help="squared, huber, poisson; logistic, multinomial, squared_hinge. By the task."),
    ] = None,
    penalty: Annotated[str, _model("--penalty", metavar="NAME", help=f"{', '.join(REGULARIZERS)}.")] = "l1",
    groups: Annotated[
        str | None,
        _model(
            "--groups", metavar="HOW", help="A size, prefix:_ (names up to the first _), or a file with a label per column."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        _model(
            "--weights",
            metavar="HOW",
            help="root (of the size of each group), or numbers separated by commas: one a group, or a coefficient for slope.",
        ),
    ] = None,
    l1_ratio: Annotated[
        list[float] | None,
        _model(
            "--l1-ratio",
            parser=_one_of_several,
            metavar="SHARE",
            help="The share of the L1 norm, where the penalty has one; with --cv again for more.",
        ),
    ] = None,
    l2: Annotated[
        float | None, _model("--l2", **_REAL, metavar="NUMBER", help="The strength of an additional squared norm.")
    ] = None,
    delta: Annotated[
        float | None, _model("--delta", **_REAL, metavar="NUMBER", help="Where the Huber loss becomes a line.")
    ] = None,
    bounds: Annotated[
        tuple[float, float] | None,
        _model("--bounds", **_REAL, metavar="LOW HIGH", help="The least and the largest coefficient: box."),
    ] = None,
    positive: Annotated[bool, _model("--positive", help="Allow no negative coefficient.")] = False,
    intercept: Annotated[bool, _model("--intercept/--no-intercept", help="Fit a constant.")] = True,
    standardize: Annotated[
        bool, _model("--standardize", help="Penalise columns scaled alike; coefficients are in the original units.")
    ] = False,
    alpha: Annotated[
        float | None, _strength("--alpha", **_REAL, metavar="NUMBER", help="The strength itself; 1 for regression, else 0.01.")
    ] = None,
    cv: Annotated[
        int | None, _strength("--cv", **_whole(2), metavar="FOLDS", help="Choose it by cross-validation on so many folds.")
    ] = None,
    rule: Annotated[
        str | None,
        _strength(
            "--rule", metavar="NAME", help="With --cv: best (the default), or one_se, the largest within one standard error."
        ),
    ] = None,
    eps: Annotated[
        float | None,
        _strength(
            "--eps",
            **_REAL,
            metavar="SHARE",
            help="With --cv: the smallest tried, as a share of the largest; by default 0.001.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None, _solving("--algorithm", metavar="NAME", help="auto, fista, dap-svrg, dap-sgd, ...: see dapsgd.solve.")
    ] = None,
    workers: Annotated[
        int | None,
        _solving(
            "--workers",
            metavar="COUNT",
            **_whole(1),
            help="Workers of dap-svrg, dap-sgd and so on, one for each core by default; fista, gram, working-set and p-sgd "
            "have one.",
        ),
    ] = None,
    tol: Annotated[
        float | None, _solving("--tol", **_REAL, metavar="NUMBER", help="The relative accuracy; 1e-4 by default.")
    ] = None,
    max_passes: Annotated[
        float | None, _solving("--max-passes", **_REAL, metavar="NUMBER", help="Stop after so many passes over the data.")
    ] = None,
    seed: Annotated[
        int | None, _solving("--seed", metavar="NUMBER", **_whole(0), help="Seed of the random choice of rows.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        _solving(
            "--checkpoint",
            metavar="FILE",
            help="Keep the run in this file, every five seconds and at a signal; not with --cv.",
        ),
    ] = None,
    resume: Annotated[bool, _solving("--resume", help="Go on from the checkpoint, if it is there.")] = False,
) -> None:
    """Fit a regularised linear model to a file of data, and write it to a model file."""
    from .commands import fit as command
    from .commands._summary import table
    from .plots import check_picture

    reading = _given(
        target=target, drop=drop, header=header, zero_based=zero_based, n_features=n_features, dtype=dtype,
        skip_missing=skip_missing or None, decimal=decimal, encoding=encoding, skip_lines=skip_lines,
    )  # fmt: skip
    options = _given(
        penalty=penalty, alpha=alpha, cv=cv, rule=rule, eps=eps, l1_ratio=_one_or_all(l1_ratio), l2=l2, delta=delta,
        bounds=bounds, fit_intercept=intercept, positive=positive, algorithm=algorithm, workers=workers, tol=tol,
        max_passes=max_passes, random_state=seed,
    )  # fmt: skip
    pictures: dict[str, Path] = _given(**{"plot": plot, "plot-cv": plot_cv, "plot-path": plot_path})
    with _explained(checkpoint):
        for name, path in pictures.items():
            check_picture(path, f"--{name}")
        about = command.run(
            data, out, pictures=pictures, reading=reading, options=options, task=task, loss=loss, groups=groups,
            weights=weights, scaled=standardize, checkpoint=checkpoint, resume=resume, convert_it=convert, cache=cache,
            progress=progress,
        )  # fmt: skip
    typer.echo(json.dumps(about) if as_json else table(about))
    typer.echo(f"model: {out}", err=as_json)
    for path in pictures.values():
        typer.echo(f"picture: {path}", err=as_json)
    for name in ("notice", "edge"):
        if name in about:
            typer.echo(about[name], err=True)
    if "remedy" in about:
        typer.echo(f"the tolerance was not reached ({about['message']}): {about['remedy']}", err=True)
        raise typer.Exit(1)


@_command(epilog=_PREDICT_EXAMPLES)
def predict(
    model: Annotated[Path, typer.Argument(help="A model file, from dapsgd fit or dapsgd.models.save.")],
    data: Annotated[Path, typer.Argument(help="The data; columns are found by name where both have names.")],
    out: Annotated[Path, typer.Option(help="Where to write the predictions, as CSV; - is standard output.")] = Path(
        "predictions.csv"
    ),
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="A column to write before the predictions, as it is, by name or position; again for more."
        ),
    ] = None,
    proba: Annotated[bool, _flag("--proba", help="Write also the probability of every class.")] = False,
    header: _Header = None,
    decimal: Annotated[
        str | None,
        typer.Option("--decimal", metavar="SIGN", help="The decimal sign of a CSV file: a comma, or a point, the default."),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option("--encoding", metavar="NAME", help="The encoding of a CSV file, such as cp1252; utf-8 by default."),
    ] = None,
    skip_lines: Annotated[
        int | None,
        typer.Option("--skip-lines", metavar="COUNT", **_whole(0), help="Leave out so many lines at the top of a CSV file."),
    ] = None,
    zero_based: _ZeroBased = None,
    as_json: _Json = False,
) -> None:
    """Predict with a model file; if the data hold the target as well, say how good the predictions are."""
    from .commands import predict as command

    reading = _given(header=header, decimal=decimal, encoding=encoding, skip_lines=skip_lines)
    with _explained():
        about = command.run(model, data, out, proba=proba, reading=reading, zero_based=zero_based, keep=keep or ())
    if as_json:
        typer.echo(json.dumps(about), err=str(out) == "-")
        return
    where = "" if str(out) == "-" else f": {out}" + " (replaced)" * ("replaced" in about)
    typer.echo(f"{about['rows']:,} predictions{where}", err=True)
    if "notice" in about:
        typer.echo(about["notice"], err=True)
    if "no_score" in about:
        typer.echo(f"no score: {about['no_score']}", err=True)
    if about.get("score") is not None:
        typer.echo(f"{about['score_name']}: {about['score']:.4f}", err=str(out) == "-")


@_command()
def show(
    model: Annotated[Path, typer.Argument(help="A model file, from dapsgd fit or dapsgd.models.save.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to save a picture of the coefficients.")] = None,
    as_json: _Json = False,
) -> None:
    """Print the summary of a model file."""
    from .models import load
    from .plots import check_picture

    with _explained():
        loaded = load(model)
        if plot is not None:
            check_picture(plot, "--plot")
            loaded.plot_coef(plot)
    typer.echo(json.dumps({"model": repr(loaded)} | loaded._about()) if as_json else str(loaded))
    if plot is not None:
        typer.echo(f"picture: {plot}", err=as_json)


def _given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None and value != []}


def _one_or_all(values: list[float] | None) -> float | list[float] | None:
    return values[0] if values and len(values) == 1 else values


@_command()
def simulate(
    case: Annotated[str, typer.Option(help="l1, group-lasso, fused-lasso or nuclear-norm.")] = "fused-lasso",
    workers: Annotated[str, typer.Option(help="1..64 (that is 1, 2, 4, ... 64), 8 or 1,2,12.")] = "1..64",
    work: Annotated[
        float | None, typer.Option(metavar="SECONDS", **_REAL, help="Seconds a worker needs for DAP-SGD; measured by default.")
    ] = None,
    prox: Annotated[
        float | None, typer.Option(metavar="SECONDS", **_REAL, help="Seconds of that for the prox, at the master in TAP-SGD.")
    ] = None,
    apply: Annotated[
        float | None, typer.Option(metavar="SECONDS", **_REAL, help="Seconds the master needs to add; measured by default.")
    ] = None,
    model: Annotated[str, typer.Option(help="How work varies: fixed, exponential, heavy-tailed or straggler.")] = "fixed",
    masters: Annotated[
        int | None,
        typer.Option(
            metavar="COUNT",
            **_whole(1),
            help="Split DAP-SGD's parameter among so many masters; by default as threads would do with a core for "
            "every worker, and 1 with --apply.",
        ),
    ] = None,
    max_delay: Annotated[
        int | None, typer.Option(metavar="COUNT", **_whole(0), help="Bound on the delay; the number of workers by default.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", **_whole(0), help="Seed of the costs that vary.")] = 0,
    out: Annotated[Path, typer.Option(help="Where to save the picture; its ending chooses the format.")] = Path("simulate.png"),
) -> None:
    """Say what more workers would do: throughput, speedup, delays and the master's load, TAP-SGD and DAP-SGD.

    Costs are measured on this machine unless --work, --prox and --apply are given.
    """
    from ._checks import known_name
    from .experiments.cases import CASES
    from .experiments.simulate import parse_workers, picture, table
    from .experiments.simulate import simulate as run
    from .plots import check_picture, save

    with _explained():
        known_name("--case", case, CASES, {"lasso": "'l1'"})
        counts = parse_workers(workers)
        check_picture(out, "--out")
        simulations, title = _simulations(case, counts, work, prox, apply, model, masters)
        options: dict[str, Any] = {"max_delay": max_delay, "seed": seed}
        scalings = [run(algorithm, simulation, counts, **options) for algorithm, simulation in simulations.items()]
        typer.echo(table(scalings))
        typer.echo(f"no delay is longer than {'the number of workers' if max_delay is None else max_delay}; fast workers wait")
        save(picture(scalings, title), out)
        typer.echo(f"picture: {out}")


def _simulations(
    case: str,
    counts: list[int],
    work: float | None,
    prox: float | None,
    apply: float | None,
    model: str,
    masters: int | None,
) -> tuple[dict[str, Any], str]:
    """Return a simulation of each algorithm, with costs measured or given, and what it is of."""
    from ._checks import known_name, non_negative
    from .experiments._busy import say_if_busy
    from .experiments.cases import CASES
    from .experiments.simulate import measure
    from .runtimes import Exponential, HeavyTailed, Simulated, Straggler

    models: dict[str, Any] = {
        "fixed": lambda mean: mean,
        "exponential": Exponential,
        "heavy-tailed": HeavyTailed,
        "straggler": Straggler,
    }
    vary = models[known_name("--model", model, models)]
    if work is None and prox is None and apply is None:
        made = CASES[case]()
        say_if_busy(partial(typer.echo, err=True), "measure again when they are done")
        typer.echo(f"{made.title}: measuring what updates cost on this machine", err=True)
        tap, dap = (measure(made, algorithm, max(counts)) for algorithm in ("tap-sgd", "dap-sgd"))
        title = f"{made.title}, costs measured on this machine"
    elif work is None or prox is None or apply is None:
        raise ValueError("--work, --prox and --apply must be given together, or none of them")
    else:
        work, prox, apply = non_negative("--work", work), non_negative("--prox", prox), non_negative("--apply", apply)
        if prox > work:
            raise ValueError(f"--prox must be at most --work, of which it is a part; got {prox:g} and {work:g}")
        if work + apply == 0.0:
            raise ValueError("--work and --apply must not both be 0")
        dap, tap = Simulated(work, apply), Simulated(work - prox, prox + apply)
        title = "costs as given"
    split = dap.masters if masters is None else masters
    return {
        "tap-sgd": Simulated(vary(cast(Any, tap.work).value), tap.apply, handover=tap.handover, masters=tap.masters),
        "dap-sgd": Simulated(vary(cast(Any, dap.work).value), dap.apply, handover=dap.handover, masters=split),
    }, title


@_command()
def reproduce(
    what: Annotated[str, typer.Argument(help="figure1, figure2, rates, delays, real or all.")] = "all",
    quick: Annotated[bool, _flag("--quick", help="Fewer iterations than the paper's: about a minute.")] = False,
    out: Annotated[Path, typer.Option(help="The folder for numbers, pictures and the report.")] = Path("reproduced"),
    seeds: Annotated[int, typer.Option(metavar="COUNT", **_whole(2), help="Runs of each, with other data.")] = 3,
    data: Annotated[Path | None, typer.Option(help="A .npz file with X and y, for the part on real data.")] = None,
    again: Annotated[bool, _flag("--again", help="Run also what an earlier run has finished.")] = False,
) -> None:
    """Re-make the paper's figures, check its claims and theorems, and write a report.

    What an interrupted run has finished is not run again. The exit status is 1 if a claim does not hold.
    """
    from .experiments import Settings
    from .experiments import reproduce as run
    from .experiments.report import claims_text

    with _explained():
        settings = Settings(quick=quick, seeds=seeds, data="" if data is None else str(data))
        claims = run(what, out, settings, again=again, progress=True, say=lambda line: typer.echo(line, err=True))
    typer.echo(claims_text(claims))
    typer.echo(f"report: {out / 'report.html'}")
    if any(claim.holds is False for claim in claims):
        raise typer.Exit(1)


@contextmanager
def _explained(kept: Path | None = None) -> Iterator[None]:
    """Show an error that the user can do something about as a sentence; end with status 2, or 1 if the run itself failed.

    ``kept`` is the file that the run is kept in.
    """
    try:
        with by_shell():
            yield
    except KeyboardInterrupt:
        rest = f"; the run is kept in {kept}: the same call with --resume goes on" if kept and kept.exists() else ""
        typer.echo(f"interrupted{rest}", err=True)
        raise typer.Exit(130) from None
    except (DivergenceError, MemoryError) as error:
        typer.echo(f"error: {error or 'out of memory'}", err=True)
        raise typer.Exit(1) from None
    except (ValueError, TypeError, OSError, ImportError, DapsgdError) as error:
        typer.echo(f"error: {_as_called(_in_words(error))}", err=True)
        raise typer.Exit(2) from None


def _in_words(error: Exception) -> str:
    """Return what an error says; one of the system as its reason and the file, without its number."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)


def _as_called(message: str) -> str:
    """Return a message that begins with the name of a parameter so that it begins with the option."""
    name, space, rest = message.partition(" ")
    known = name != "data" and name in inspect.signature(fit).parameters
    return f"--{name.replace('_', '-')}{space}{rest}" if known else message


def main() -> None:
    """Run the command line; a wrong call ends it with a sentence and status 2, Ctrl-C with 130, neither with a traceback."""
    try:
        with no_signal_is_lost():
            status = app(prog_name="dapsgd", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        typer.echo("interrupted", err=True)
        raise SystemExit(130) from None
    except _UsageError as error:
        message = error.format_message().strip().rstrip(".")
        if message and "\n" not in message:  # else it is the whole help, for who gave nothing, and was shown
            where = "dapsgd" if error.ctx is None else error.ctx.command_path
            typer.echo(f"error: {message[:1].lower()}{message[1:]}; see {where} --help", err=True)
        raise SystemExit(2) from None
    raise SystemExit(status if isinstance(status, int) else 0)


if __name__ == "__main__":
    main()
