"""Rows at random: probabilities, and labels that are drawn from them or from a truth beside them.

A seed may also be a generator, from which a test can go on drawing. The order of the draws is part of what a function
promises: the bounds that tests assert belong to the rows that they drew. Nothing here imports the library.
"""

from __future__ import annotations

import numpy as np

# -------------------------------------------------------------------------------------------------------------- parts


def draw_codes(proba, seed):
    """Classes (...) drawn from probabilities (..., K)."""
    level = np.random.default_rng(seed).random((*proba.shape[:-1], 1))
    return (proba.cumsum(axis=-1)[..., :-1] < level).sum(axis=-1)


def draw_flags(proba, seed):
    """1 with these probabilities, else 0."""
    return (np.random.default_rng(seed).random(proba.shape) < proba).astype(int)


def named(codes, names):
    """Labels of codes; without names the codes themselves."""
    return codes if names is None else np.asarray(names)[codes]


def hide(y, share, seed):
    """Labels as floats, a share of which is missing: of all, or one share for each output."""
    hidden = np.random.default_rng(seed).random(y.shape) < share
    return np.where(hidden, np.nan, y)


def normalized(scores):
    """Scores (..., K) divided by their sums."""
    return scores / scores.sum(axis=-1, keepdims=True)


def softmax(logits):
    return normalized(np.exp(logits - logits.max(axis=-1, keepdims=True)))


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def stepped(n, k, steps, seed, concentration=1.0):
    """Probabilities (N, K) around a common mean that are multiples of 1 / steps: few steps make many ties."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(steps, rng.dirichlet(np.full(k, float(concentration))), size=n) / steps


def stepped_or_smooth(n, k, seed):
    """Few steps or continuous, so that some problems have ties, rows that repeat and classes that never occur."""
    rng = np.random.default_rng(seed)
    eta = rng.multinomial(rng.choice([4, 10, 1000]), rng.dirichlet(np.ones(k)), size=n) + 0.0
    if rng.random() < 0.4:
        eta = rng.dirichlet(np.full(k, 0.6), size=n)
    return normalized(eta)


# ----------------------------------------------------------------------------------------------------- one kind of rows


def binary(n=400, *, a=1, b=3, decimals=None, power=1, names=None, seed=0):
    """Probabilities of class 1 that follow a beta distribution, and labels.

    n : number of rows, or (rows, outputs) for several labels; decimals : of the probabilities, before labels are drawn;
    power : labels are drawn from ``proba**power``, so that 1 means calibrated; names : of classes 0 and 1.
    """
    rng = np.random.default_rng(seed)
    proba = rng.beta(a, b, n)
    if decimals is not None:
        proba = proba.round(decimals)
    return proba, named(draw_flags(proba**power, rng), names)


def multiclass(n=400, concentration=(3, 2, 1), *, sharpen=1, every_class=False, names=None, seed=0):
    """Probabilities that follow a Dirichlet distribution, and labels drawn from them.

    n : number of rows, or (rows, outputs); sharpen : the probabilities that are returned are proportional to this power
    of those that labels are drawn from; every_class : the first K rows have one class each.
    """
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(concentration, n)
    codes = draw_codes(eta, rng)
    if every_class:
        show_every_class(codes, eta.shape[-1])
    return (eta if sharpen == 1 else normalized(eta**sharpen)), named(codes, names)


def show_every_class(codes, k):
    """Give the first K rows one class each, in every output."""
    codes[:k] = np.arange(k).reshape(-1, *[1] * (codes.ndim - 1))


def outputs(n, concentrations, *, every_class=False, names=None, seed=0):
    """A list of probabilities, one array for each output with a Dirichlet distribution of its own, and codes (N, M).

    names : one list for each output, which makes labels of codes, in an array of objects.
    """
    rng = np.random.default_rng(seed)
    proba = [rng.dirichlet(concentration, n) for concentration in concentrations]
    codes = np.column_stack([draw_codes(eta, rng) for eta in proba])
    if every_class:
        show_every_class(codes, max(eta.shape[1] for eta in proba))
    if names is None:
        return proba, codes
    y = np.empty(codes.shape, dtype=object)
    for m, labels in enumerate(names):
        y[:, m] = named(codes[:, m], labels)
    return proba, y


def of_kind(kind, n=400, *, power=1, missing=None, seed=0):
    """Rows of a kind of target: binary, multiclass, multilabel, multioutput, or unequal, outputs of 3 and 2 classes.

    power : as in `binary`, for that kind; missing : shares of labels that are hidden, by kind.
    """
    rng = np.random.default_rng(seed)
    draw = {
        "binary": lambda: binary(n, power=power, seed=rng),
        "multiclass": lambda: multiclass(n, [2, 1, 0.7], seed=rng),
        "multilabel": lambda: binary((n, 4), seed=rng),
        "multioutput": lambda: multiclass((n, 3), [2, 1, 1], seed=rng),
        "unequal": lambda: outputs(n, [[2, 1, 1], [1, 2]], seed=rng),
    }
    proba, y = draw[kind]()
    return proba, hide(y, missing[kind], rng) if missing and kind in missing else y


def graded(n=600, names=("low", "mid", "high"), seed=0):
    """Probabilities of the grades low, mid and high, columns in the order of their names, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    logits = {"low": -2.2 * z, "mid": 0.3 - 0.45 * z**2, "high": 2.2 * z}
    proba = normalized(np.exp(np.stack([logits[name] for name in names], axis=1)))
    return proba, named(draw_codes(proba, rng), names)


def named_outputs(*classes, n=300, seed=0):
    """Probabilities, labels and noisy predictions of outputs with these classes."""
    rng = np.random.default_rng(seed)
    proba, true, noisy = [], [], []
    for names in map(np.asarray, classes):
        eta, labels = multiclass(n, np.full(len(names), 0.7), names=names, seed=rng)
        proba.append(eta)
        true.append(labels)
        noisy.append(np.where(rng.random(n) < 0.4, names[rng.integers(0, len(names), n)], labels))
    return proba, np.stack(true, axis=1), np.stack(noisy, axis=1)


def fraud(p, seed=0):
    """Both columns as scikit-learn has them, and labels "fraud" with these probabilities, else "ok"."""
    return np.stack([p, 1 - p], axis=1), named(1 - draw_flags(p, seed), ["fraud", "ok"])


# ------------------------------------------------------------------------------------------ rows of a model of features


def features(n, n_features=3, *, above=1, names=None, seed=0):
    """Normal features, and labels: whether the first of them, with as much noise, is above a level."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, named((X[:, 0] + rng.normal(size=n) > above).astype(int), names)


def clouds(n, priors, centres, seed=0):
    """Features that are normal around the centre of their class, and codes; centres may be more than priors."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(len(priors), p=priors, size=n)
    return centres[codes] + rng.normal(size=(n, centres.shape[1])), codes


def posterior(X, priors, centres):
    """What a model says that knows the `clouds` and takes these for their priors."""
    distance = ((X[:, None] - centres[: len(priors)]) ** 2).sum(axis=2)
    return softmax(np.log(priors) - 0.5 * distance)


# -------------------------------------------------------------------------------------- rows that depend on one another


def autoregressive(n, rho, seed):
    """A stationary autoregressive series of unit variance."""
    from scipy.signal import lfilter

    rng = np.random.default_rng(seed)
    noise = rng.normal(size=n) * np.sqrt(1 - rho**2)
    noise[0] = rng.normal()
    return lfilter([1.0], [1.0, -rho], noise)


def in_time(n, rho, seed):
    """Probabilities that see one of two autoregressive causes of the labels, and labels."""
    rng = np.random.default_rng(seed)
    visible, hidden = autoregressive(n, rho, rng), autoregressive(n, rho, rng)
    y = draw_flags(sigmoid(2 * visible + hidden - 1), rng)
    return sigmoid(1.8 * visible - 0.9), y


def in_groups(n_groups=40, size=10, seed=0):
    """Groups of rows of about one probability, whose labels depend on one another, each calibrated by itself.

    Returns probabilities, labels and the group of each row.
    """
    from scipy.stats import norm

    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(n_groups), size)
    proba = rng.beta(1, 3, n_groups)[group] * rng.uniform(1 - 1e-9, 1, len(group))
    shared, single = rng.normal(size=n_groups)[group], rng.normal(size=len(group))
    y = (norm.cdf(np.sqrt(0.8) * shared + np.sqrt(0.2) * single) < proba).astype(int)
    return proba, y, group


def shifted_groups(n=300, n_groups=2, *, decimals=2, seed=0):
    """Binary rows of groups with different base rates, rounded so that many tie: probabilities, labels, groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    proba = sigmoid(rng.normal(0.9 * group - 0.6, 1.2)).round(decimals)
    return proba, draw_flags(proba, rng), group


def copies(n, times, seed=0):
    """Which row each row is a copy of: each of n rows so many times, in random order."""
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(n), times))
