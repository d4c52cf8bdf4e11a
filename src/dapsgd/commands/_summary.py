"""What is said of a fitted model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._summaries import ON_SCALED, SCALED, about_accuracy, about_groups, about_scores, by_workers, counted, group_labels

__all__ = ["describe", "table"]


def describe(model: Any, groups: Any) -> dict[str, Any]:
    """Return what there is to say of a fitted model's coefficients, by what its penalty is about."""
    W = np.atleast_2d(model.coef_)  # a row a target or class
    result = model.result_
    made = model.path_.results if hasattr(model, "path_") else [result]  # to get there
    about: dict[str, Any] = {"objective": model.objective_}
    if math.isfinite(model.dual_gap_):
        about["duality_gap"] = model.dual_gap_
    about |= {
        "residual": model.residual_,
        "converged": bool(result.converged),
        "iterations": sum(one.iterations for one in made),
        "passes": sum(one.passes for one in made),
        "workers": result.workers,
        "algorithm": result.algorithm,
        "coefficients": int(W.size),
        "nonzeros": int(np.count_nonzero(W)),
    }
    if model.penalty in ("group_lasso", "sparse_group_lasso"):
        labels = group_labels(groups, W.shape[1])
        about["groups"] = len(np.unique(labels))
        about["nonzero_groups"] = len(np.unique(labels[(W != 0.0).any(axis=0)]))
        about["about_groups"] = about_groups(W, groups)
    if model.penalty == "fused_lasso":
        about["jumps"] = int(np.count_nonzero(np.diff(W, axis=1)))
    if model.penalty == "nuclear":
        about["rank"] = int(np.linalg.matrix_rank(W))
    return about


def table(about: dict[str, Any]) -> str:
    """Return a summary as lines of text, with what applies."""
    seconds = about["seconds"]
    strength = "" if about["penalty"] in ("zero", "box") else f" of strength {about['alpha']:.6g}"
    share = f" (l1_ratio {about['l1_ratio']:.4g})" if "l1_ratio" in about else ""
    chosen = f", chosen on {about['folds']} folds by the rule {about['rule']}" if "folds" in about else ""
    chosen += ", which is the default; --cv chooses one" if about.get("default") and strength else ""
    skipped = f", {counted(about['skipped'], 'row')} with a missing value left out" if about["skipped"] else ""
    size = f"{counted(about['rows'], 'row')}, {counted(about['columns'], 'column')}"
    lines = {
        "task": f"{about['task']}: {about['reason']}",
        "data": f"{size}, target {', '.join(about['target'])}{skipped}",
        "model": f"loss {about['loss']}, penalty {about['penalty']}{share}{strength}{chosen}",
    }
    on_scaled = ON_SCALED if about.get("scaled") else ""
    if on_scaled:
        lines["scaled"] = SCALED
    if "classes" in about:
        lines["classes"] = about["classes"]
    lines |= about_accuracy(about["objective"], about.get("duality_gap", math.nan), about["residual"])
    lines["objective"] += on_scaled
    lines["non-zeros"] = f"{about['nonzeros']:,} of {about['coefficients']:,} coefficients"
    if "groups" in about:
        lines["groups"] = about["about_groups"]
    for name in ("jumps", "rank"):
        if name in about:
            lines[name] = f"{about[name]:,}{on_scaled}"
    if about["score"] is not None:  # of one row there is none
        lines[about["score_name"]] = f"{about['score']:.4f} on these data"
    if "held_out" in about:
        lines["held out"] = about_scores(
            [tuple(about[name].values()) for name in ("held_out", "held_out_accuracy") if name in about]
        )
    passes, workers = counted(about["passes"], "pass", "passes"), by_workers(about["workers"], about["algorithm"])
    lines["work"] = f"{counted(about['iterations'], 'iteration')}, {passes}, {workers}"
    lines["seconds"] = f"{seconds['read']:.2f} to read, {seconds['fit']:.2f} to fit"
    return "\n".join(f"{title:<12} {text}" for title, text in lines.items())
