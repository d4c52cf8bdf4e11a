"""One package a file. A file declares

PACKAGE                     the distribution whose version is reported
VARIANTS                    names of its ways to solve a problem; "" is its usual one
BUDGETS                     from loose to tight: what ``run`` takes, a tolerance or a number of iterations
refuses(spec, variant)      why it does not solve a problem; "" if it does
prepare(problem, variant)   off the clock: bring the data into the layout it likes; returns run(budget) -> coefficients
"""

MODULES = [
    "dapsgd_",
    "numpy_fista",
    "sklearn_",
    "skglm_",
    "celer_",
    "adelie_",
    "spams_",
    "cyanure_",
    "lightning_",
    "copt_",
    "tick_",
]


def tolerances(loosest=0, tightest=-14):
    """Half decades."""
    return [10.0 ** (power / 2) for power in range(2 * loosest, 2 * tightest - 1, -1)]


def iterations(most=200_000):
    """Steps of about a fifth."""
    ladder = [1]
    while ladder[-1] < most:
        ladder.append(max(ladder[-1] + 1, round(1.2 * ladder[-1])))
    return ladder


def only(spec, *, penalties, losses=("squared", "logistic"), sparse=True):
    """Say why a problem is not among those given; "" if it is."""
    if spec.penalty not in penalties:
        return f"has no {spec.penalty} penalty"
    if spec.loss not in losses:
        return f"has no {spec.loss} loss with this penalty"
    if spec.nonzeros and not sparse:
        return "takes no sparse matrix"
    return ""
