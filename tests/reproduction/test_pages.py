"""The pages in docs/reproduction say what their CSV files say, and who made them: every number, counted again."""

from __future__ import annotations

import csv
import json
import math
import re
import shlex
import statistics
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from reproduction import cli
from reproduction.catalogue import EXPERIMENTS
from reproduction.datasets import local_folder
from reproduction.protocol import RunSettings
from reproduction.reports.pages import write_pages
from reproduction.reports.paper_numbers import MOVIELENS, paper_deviation, paper_ratio, paper_value

FOLDER = Path(__file__).parents[2] / "docs" / "reproduction"
PAGES = {name.replace("-", "_"): experiment for name, experiment in EXPERIMENTS.items()}
METRICS = {"Ordinal": "ordinal", "Micro-F1": "micro_f1", "Weighted 1/2": "weighted"}
AVERAGES = ("micro", "macro")
MODELS = ("LogReg", "KNN", "RF", "DT")
VARIANTS = {"half split": "half", "default": "default", "expected": "cross", "expected, linked": "link"}


class Results:
    """The rows of a CSV file, and the page beside it."""

    def __init__(self, name):
        with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
        parts = re.split(r"^## (.*)$", self.text, flags=re.MULTILINE)
        self.sections = dict(zip(parts[1::2], parts[2::2], strict=True))

    def table(self, title):
        lines = [line for line in self.sections[title].splitlines() if line.startswith("|")]
        head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
        return [dict(zip(head, row, strict=True)) for row in rows]

    def column(self, column, **keys):
        found = [float(row[column]) for row in self.rows if all(row[key] == str(value) for key, value in keys.items())]
        assert found, (column, keys)
        return found


@pytest.fixture(scope="module")
def uci_paper():
    return Results("uci_paper")


@pytest.fixture(scope="module")
def uci():
    return Results("uci")


def with_deviation(values):
    return f"{statistics.fmean(values):.4f} ± {statistics.pstdev(values):.4f}"


def corrected_interval(first, second, test_over_train):
    """Nadeau and Bengio: the variance of the mean over splits that share rows."""
    difference = [a - b for a, b in zip(first, second, strict=True)]
    mean, n = statistics.fmean(difference), len(difference)
    scale = math.sqrt(statistics.variance(difference) * (1 / n + test_over_train))
    if scale == 0:
        return mean, mean, mean
    return mean, *(float(x) for x in stats.t.interval(0.95, n - 1, loc=mean, scale=scale))


def interval_cell(first, second, test_over_train=0.25):
    mean, low, high = corrected_interval(first, second, test_over_train)
    return f"{mean:+.4f} [{low:+.4f}, {high:+.4f}]"


def same_cell(cell, expected):
    """Whether two cells have the same words and numbers, but for rounding of the last digit and the sign of 0."""
    number = r"[-+]?[0-9][0-9,]*\.?[0-9]*(?:e[-+]?[0-9]+)?"
    assert re.sub(number, "#", cell) == re.sub(number, "#", expected), (cell, expected)
    for one, two in zip(re.findall(number, cell), re.findall(number, expected), strict=True):
        one, two = one.replace(",", ""), two.replace(",", "")
        digits = len(one.partition(".")[2].partition("e")[0])
        unit = 10.0 ** (int(one.partition("e")[2] or 0) - digits)
        assert float(one) == pytest.approx(float(two), rel=1e-12, abs=1.01 * unit), (cell, expected)


# ------------------------------------------------------------------------------------------------------ all pages


@pytest.mark.parametrize("name", PAGES)
def test_page_is_made_of_its_csv(name, tmp_path):
    """Made again from the CSV and the record, the page is the same, every word and digit."""
    results = Results(name)
    record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    settings = RunSettings(seed=record["seed"], data=local_folder())
    if name == "uci" and settings.data is None:
        pytest.skip("METRICWISE_DATA is not set, and the page counts the rows of the data")
    tables = PAGES[name]().report(results.rows, settings, tmp_path)
    path = write_pages(name, tables, record, settings, tmp_path)
    assert path.read_text(encoding="utf-8") == results.text
    made, shown = ((folder / f"{name}.html").read_text(encoding="utf-8") for folder in (tmp_path, FOLDER))
    assert made == shown


@pytest.mark.parametrize("name", PAGES)
def test_results_are_those_of_the_command_that_the_page_names(name):
    results = Results(name)
    record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    words = shlex.split(record["command"])
    assert words[:3] == ["python", "-m", "reproduction"]
    options = cli._parser().parse_args(words[3:])
    assert options.experiment in (name.replace("_", "-"), "all")
    assert not options.quick
    assert options.seed == record["seed"]
    assert f"`{record['command']}`" in results.text
    experiment = PAGES[name]()
    tasks = experiment.tasks(RunSettings(seed=options.seed, repetitions=options.repetitions))
    found = [tuple(row[key] for key in experiment.keys) for row in results.rows]
    assert found == [tuple(map(str, task)) for task in tasks]


@pytest.mark.parametrize("name", PAGES)
def test_provenance(name):
    record = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    text = Results(name).text
    assert record["seconds"] > 0
    assert f"in {record['seconds']:,.0f} seconds" in text
    for key in ("processor", "blas"):
        assert record[key] != "unknown"
        assert record[key] in text
    assert record["threads"] == 1
    assert f"{record['jobs']} processes, BLAS threads in each: 1" in text
    assert f"scikit-learn {record['versions']['scikit-learn']}" in text
    assert "last digits may differ" in text


# ------------------------------------------------------------------------------------------------------ uci_paper


def test_z_scores(uci_paper):
    """At least 178 of the 180 values of the appendix are within 3 of the paper's standard deviations."""
    near = total = 0
    for title, metric in METRICS.items():
        for average in AVERAGES:
            table = uci_paper.table(f"{title}, {average}-average, beside the paper")
            assert len(table) == 30
            for row in table:
                name, algorithm = row["set"], row["algorithm"]
                model, variant = algorithm.removeprefix("C-"), "half" if algorithm.startswith("C-") else "base"
                values = uci_paper.column(f"{metric}_{average}_{variant}", set=name, model=model)
                same_cell(row["ours"], with_deviation(values))
                mean, deviation = (
                    number(metric, average, name, algorithm) for number in (paper_value, paper_deviation)
                )
                assert row["the paper's"] == f"{mean:.4f} ± {deviation:.4f}"
                z = (statistics.fmean(values) - mean) / deviation
                same_cell(row["z"], f"{z:+.2f}")
                near += abs(z) <= 3
                total += 1
    assert total == 180
    assert near >= 178
    assert f"- {near} of the 180 values" in uci_paper.sections["In short"]


def test_weighted_is_nearest_with_rate_two_from_zero(uci_paper):
    table = uci_paper.table("Which Weighted 1/2 is the paper's")
    for row in table:
        rate, first = re.fullmatch(r"e\^\(-([0-9.]+) i\) from i = ([01])", row["weights"]).groups()
        z = [
            (statistics.fmean(values) - paper_value("weighted", average, name, model))
            / paper_deviation("weighted", average, name, model)
            for name in list(row)[1:-1]
            for average in AVERAGES
            for model in MODELS
            for values in [
                uci_paper.column(f"weighted_{float(rate)}_from_{first}_{average}_base", set=name, model=model)
            ]
        ]
        assert len(z) == 40
        same_cell(row["all"], f"{np.sqrt(np.mean(np.square(z))):.2f}")
    assert min(table, key=lambda row: float(row["all"]))["weights"] == "e^(-2 i) from i = 0"


def test_uci_paper_ratios(uci_paper):
    for row in uci_paper.table("Performance ratios (the paper's Table 3)"):
        metric, average, model = METRICS[row["metric"]], row["average"], row["model"]
        for name in list(row)[4:]:
            if row["whose"] != "ours":
                assert row[name] == f"{paper_ratio(metric, average, name, model):.4f}"
                continue
            same_cell(row[name], ratio_cell(uci_paper, name, model, f"{metric}_{average}", "half"))


def ratio_cell(results, name, model, column, variant):
    top, base = (results.column(f"{column}_{which}", set=name, model=model) for which in (variant, "base"))
    each = f"{statistics.fmean(a / b for a, b in zip(top, base, strict=True)):.4f}" if min(base) > 0 else "-"
    return f"{statistics.fmean(top) / statistics.fmean(base):.4f} ({each})"


def test_like_for_like(uci_paper):
    """Ours against the paper's algorithm on the same features, model by model, with the paired interval."""
    table = uci_paper.table("Like for like: metricwise's default against the paper's algorithm")
    counts = {model: [0, 0, 0] for model in MODELS}
    for row in table:
        column = f"{METRICS[row['metric']]}_{row['average']}"
        for name in list(row)[3:]:
            ours, theirs = (
                uci_paper.column(f"{column}_{which}", set=name, model=row["model"]) for which in ("default", "half")
            )
            same_cell(row[name], interval_cell(ours, theirs))
            _, low, high = corrected_interval(ours, theirs, 0.25)
            counts[row["model"]][0 if low > 0 else 1 if high < 0 else 2] += 1
    for model, (above, below, zero) in counts.items():
        words = f"its interval is above 0 in {above}, below in {below}, and contains it in {zero}."
        (line,) = [line for line in uci_paper.text.splitlines() if line.startswith(f"- Like for like, {model}:")]
        assert line.endswith(words)


# ------------------------------------------------------------------------------------------------------------ uci


def test_uci_values(uci):
    columns = {"argmax": "base"} | {f"C, {words}": variant for words, variant in VARIANTS.items()}
    for title, metric in METRICS.items():
        for average in AVERAGES:
            for row in uci.table(f"{title}, {average}-average"):
                for words, variant in columns.items():
                    values = uci.column(f"{metric}_{average}_{variant}", set=row["set"], model=row["model"])
                    same_cell(row[words], with_deviation(values))


def test_uci_ratios(uci):
    for row in uci.table("Performance ratios (the paper's Table 3)"):
        if row["rule"] in VARIANTS:
            column = f"{METRICS[row['metric']]}_{row['average']}"
            for name in list(row)[4:]:
                same_cell(row[name], ratio_cell(uci, name, row["model"], column, VARIANTS[row["rule"]]))


def test_uci_differences_and_counts(uci):
    """How many ratios are at least 1, and in how many cells that cannot be told from 0."""
    counts = {(words, only): [0, 0, 0] for words in VARIANTS for only in (True, False)}
    for row in uci.table("Differences, with paired intervals"):
        name, model, column = row["set"], row["model"], f"{METRICS[row['metric']]}_{row['average']}"
        base = uci.column(f"{column}_base", set=name, model=model)
        for words, variant in VARIANTS.items():
            values = uci.column(f"{column}_{variant}", set=name, model=model)
            same_cell(row[words], interval_cell(values, base))
            _, low, high = corrected_interval(values, base, 0.25)
            for only in (True, False):
                if not only or (model in ("LogReg", "DT") and name != "wiki4he"):
                    count = counts[words, only]
                    count[0] += 1
                    count[1] += statistics.fmean(values) >= statistics.fmean(base)
                    count[2] += low <= 0 <= high
    for words in VARIANTS:
        (line,) = [line for line in uci.text.splitlines() if line.startswith(f"- {words}:")]
        for only, cells in ((True, 60), (False, 144)):
            total, good, zero = counts[words, only]
            assert total == cells
            assert re.search(
                rf"at least 1 in {good} of {cells} \(least [0-9.]+\), and the corrected interval of the difference "
                rf"contains 0 in {zero}[;.]",
                line,
            )


# ------------------------------------------------------------------------------------------------------- the others


def test_synthetic():
    results = Results("synthetic")
    titles = {
        "C-LogReg over LogReg: mean of the ratios ± standard deviation": ("ours", "base"),
        "C-LogReg over LogReg: ratio of the means": ("ours", "base"),
        "The true Bayes rules: mean of the ratios": ("bayes", "bayes_base"),
        "The true Bayes rules: ratio of the means": ("bayes", "bayes_base"),
    }
    for title, (top, bottom) in titles.items():
        for row in results.table(title):
            c1 = row[""].removeprefix("C1 = ")
            for head in list(row)[1:]:
                c2 = head.removeprefix("C2 = ")
                above, below = (results.column(f"{which}_{c2}", C1=c1) for which in (top, bottom))
                ratios = [a / b for a, b in zip(above, below, strict=True)]
                cell = f"{statistics.fmean(ratios):.3f}"
                if "±" in title:
                    cell += f" ± {statistics.pstdev(ratios):.3f}"
                elif title.endswith("ratio of the means"):
                    cell = f"{statistics.fmean(above) / statistics.fmean(below):.3f}"
                same_cell(row[head], cell)


def test_movielens():
    results = Results("movielens")
    models = dict(zip(("bias", "ordrec", "strong"), dict.fromkeys(models_of(results)), strict=True))
    rules = ("argmax", "micro", "macro", "link")
    averages = ("micro", "macro", "ten", "many", "filled", "sqrt", "users")
    for title, scale in (("the paper's scale, 1 - |i - j| / K", 0.8), ("our scale, 1 - |i - j| / (K - 1)", 1.0)):
        table = results.table(f"Ordinal on {title}")
        for i, (model, words) in enumerate(models.items()):
            for j, rule in enumerate(rules):
                row = table[4 * i + j]
                assert row["model"] == words
                for head, average in zip(list(row)[2:], averages, strict=True):
                    values = [1 - scale * (1 - x) for x in results.column(f"{model}_{rule}_{average}")]
                    same_cell(row[head], with_deviation(values))
    variants = results.table("What macro may mean, on the paper's scale")
    assert [row["macro-average"] for row in variants[:6]] == list(results.table(f"Ordinal on {title}")[0])[3:]
    for i, row in enumerate(variants[:-1]):
        model, average = ("ordrec", "strong")[i // 6], averages[1 + i % 6]
        before, after = (
            [1 - 0.8 * (1 - x) for x in results.column(f"{model}_{rule}_{average}")] for rule in ("argmax", "micro")
        )
        same_cell(row["argmax"], f"{statistics.fmean(before):.4f}")
        same_cell(row["consistent"], f"{statistics.fmean(after):.4f}")
        same_cell(row["gain"], interval_cell(after, before, 1.0))
        away = statistics.fmean(after) - MOVIELENS["macro"][1][0]
        same_cell(row["consistent, from it"], f"{away:+.4f}")


def models_of(results):
    table = results.table("Ordinal on our scale, 1 - |i - j| / (K - 1)")
    return [row["model"] for row in table]


def test_consistency():
    results = Results("consistency")
    titles = {
        "Regret of the paper's algorithm": "regret",
        "Regret of argmax of the same probabilities": "argmax",
        "The bound, with its unknown constant set to 1": "bound",
    }
    sizes = []
    for title, what in titles.items():
        table = results.table(title)
        sizes = [row["N"].replace(",", "") for row in table]
        for row, n in zip(table, sizes, strict=True):
            assert row["repetitions"] == str(sum(one["N"] == n for one in results.rows))
            for head in list(row)[2:]:
                metric, average = head.split(", ")
                same_cell(row[head], f"{statistics.fmean(results.column(f'{metric}_{average}_{what}', N=n)):.2e}")
    columns = [column.removesuffix("_regret") for column in results.rows[0] if column.endswith("_regret")]
    pairs = [(float(row[f"{c}_bound"]), float(row[f"{c}_regret"])) for row in results.rows for c in columns]
    least = min(bound / regret for bound, regret in pairs if regret > 0)
    text = results.sections["In short"]
    assert f"is broken in {sum(bound < regret for bound, regret in pairs)} of {len(pairs)} single values" in text
    assert f"is {least:.3g} at least in a single repetition" in text
    large = [n for n in sizes if int(n) >= 1000]
    assert f"the {len(large)} sizes N from {int(large[0]):,} to {int(large[-1]):,}" in text
    for average in AVERAGES:
        fits = []
        for metric in ("ordinal", "weighted", "micro_f1", "jaccard"):
            means = [statistics.fmean(results.column(f"{metric}_{average}_regret", N=n)) for n in large]
            fit = stats.linregress(np.log([float(n) for n in large]), np.log(means)).slope
            fits.append(f"{metric} {fit:.2f}")
        assert f"- {average}: slopes of the regret {', '.join(fits)};" in text
