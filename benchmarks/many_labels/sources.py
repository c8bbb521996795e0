"""Two real sets, made from what Debian distributes: texts, their labels, and out-of-fold probabilities.

``debtags``
    Names and descriptions of Debian packages, and the tags that people gave them (field Tag of the package index).
``hypernyms``
    Nouns of WordNet 3.0 (package wordnet-base) with their definitions, and all hypernyms above them.

Features are TF-IDF of words; the model is a label tree of logistic regressions (omikuji, one tree), fitted to four of
five folds. The 50 most probable labels of a row that are at least 0.0001 are stored. Rows are in random order.
omikuji splits labels at random and takes no seed: files made again have other numbers, of the same quality.
Needs ``apt-get`` of a Debian system, a connection to its archive, and omikuji (dependency group bench); nothing of the
system is changed. Each set takes a few minutes.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import KFold
from sklearn.preprocessing import MultiLabelBinarizer

FOLDS = 5
N_STORED, FLOOR = 50, 1e-4
BEAM = 20
AS_CALLER = "APT::Sandbox::User=root"  # files are in a folder of who calls
MIN_ROWS_A_WORD = 2

Texts = tuple[list[str], list[list[str]]]  # of each row: its text, and the names of its labels


# ---------------------------------------------------------------------------------------------------------------------
# Debian


def run(*command: str, folder: Path | None = None) -> bytes:
    return subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout


def package_lists(folder: Path) -> dict[str, Path]:
    """Return the index and the English descriptions of the main archive, fetched into a folder of their own."""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    settings = (f"Dir::State::lists={lists}", f"Dir::Cache={folder}", "Acquire::Languages=en", AS_CALLER)
    run("apt-get", *(part for setting in settings for part in ("-o", setting)), "update")
    patterns = {"index": "*debian_dists*main*Packages*", "descriptions": "*debian_dists*main*Translation-en*"}
    sizes = {kind: {path.stat().st_size: path for path in lists.glob(name)} for kind, name in patterns.items()}
    return {kind: found[max(found)] for kind, found in sizes.items()}  # not those of updates


def paragraphs(path: Path) -> Iterator[dict[str, str]]:
    """Return the fields of each paragraph of a file of the archive, with continued lines joined."""
    text = run("/usr/lib/apt/apt-helper", "cat-file", str(path)).decode()
    for paragraph in text.split("\n\n"):
        lines = re.sub(r"\n[ \t]+", " ", paragraph.strip("\n")).split("\n")
        if lines[0]:
            yield dict(line.split(":", 1) for line in lines)


def debtags(folder: Path) -> Texts:
    lists = package_lists(folder)
    described = {one["Package"].strip(): one.get("Description-en", "") for one in paragraphs(lists["descriptions"])}
    tagged = {one["Package"].strip(): one for one in paragraphs(lists["index"]) if "Tag" in one}
    texts = [f"{name} {described.get(name, one.get('Description', ''))}" for name, one in tagged.items()]
    return texts, [sorted({tag.strip() for tag in one["Tag"].split(",")}) for one in tagged.values()]


# ---------------------------------------------------------------------------------------------------------------------
# WordNet


def hypernyms(folder: Path) -> Texts:
    folder.mkdir(parents=True, exist_ok=True)
    run("apt-get", "-o", AS_CALLER, "download", "wordnet-base", folder=folder)
    archive = run("dpkg-deb", "--fsys-tarfile", str(next(folder.glob("wordnet-base*.deb"))))
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        lines = files.extractfile("./usr/share/wordnet/data.noun").read().decode().splitlines()  # type: ignore[union-attr]
    return read_nouns(line for line in lines if not line.startswith(" "))


def read_nouns(lines: Iterable[str]) -> Texts:
    """Return words and definitions of nouns, and all that lies above them; nouns below nothing are left out."""
    texts, parents = {}, {}
    for line in lines:
        data, _, gloss = line.partition(" | ")
        fields = data.split()
        n_words = int(fields[3], 16)
        words = [word.replace("_", " ") for word in fields[4 : 4 + 2 * n_words : 2]]
        pointers = fields[5 + 2 * n_words :]
        parents[fields[0]] = [pointers[at + 1] for at in range(0, len(pointers) - 3, 4) if pointers[at] in ("@", "@i")]
        texts[fields[0]] = f"{' '.join(words)} {gloss}"
    rows = [noun for noun in texts if parents[noun]]
    return [texts[noun] for noun in rows], [sorted(ancestors(noun, parents)) for noun in rows]


def ancestors(noun: str, parents: dict[str, list[str]]) -> set[str]:
    above: set[str] = set()
    waiting = list(parents[noun])
    while waiting:
        parent = waiting.pop()
        if parent not in above:
            above.add(parent)
            waiting += parents[parent]
    return above


# ---------------------------------------------------------------------------------------------------------------------
# probabilities


SOURCES: dict[str, Callable[[Path], Texts]] = {"debtags": debtags, "hypernyms": hypernyms}


def build(name: str) -> tuple[csr_matrix, csr_matrix]:
    """Return probabilities and labels of a set."""
    with tempfile.TemporaryDirectory() as folder:
        texts, names = SOURCES[name](Path(folder))
    order = np.random.default_rng(0).permutation(len(texts))
    features = TfidfVectorizer(min_df=MIN_ROWS_A_WORD, sublinear_tf=True, dtype=np.float32).fit_transform(
        [texts[row] for row in order]
    )
    y = csr_matrix(MultiLabelBinarizer(sparse_output=True).fit_transform([names[row] for row in order]), dtype=np.int8)
    y.sort_indices()
    return out_of_fold(features, y), y


def out_of_fold(features: csr_matrix, y: csr_matrix) -> csr_matrix:
    """Return the stored probabilities of each row by a tree that was fitted without its fold."""
    entries: list[Any] = [None] * features.shape[0]
    for train, left_out in KFold(FOLDS, shuffle=True, random_state=0).split(features):
        model = fit_tree(features[train], y[train])
        for row in left_out:
            entries[row] = predict_row(model, features, row)
    return assemble_rows(entries, y.shape[1])


def fit_tree(features: csr_matrix, y: csr_matrix) -> Any:
    import omikuji

    settings = omikuji.Model.default_hyper_param()
    settings.n_trees = 1
    settings.linear_loss_type = omikuji.LossType.LOG.value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        write_rows(path, features, y)
        with silence():
            return omikuji.Model.train_on_data(str(path), settings, n_threads=1)


@contextmanager
def silence() -> Iterator[None]:
    """Leave out what a library written in another language prints: a progress bar with a line for every step."""
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        with Path(os.devnull).open("w") as nowhere:
            for number, _ in kept:
                os.dup2(nowhere.fileno(), number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


def write_rows(path: Path, features: csr_matrix, y: csr_matrix) -> None:
    """Write rows in the format of the extreme classification repository."""
    with path.open("w") as file:
        print(*features.shape, y.shape[1], file=file)
        for row in range(features.shape[0]):
            some = slice(features.indptr[row], features.indptr[row + 1])
            pairs = zip(features.indices[some], features.data[some], strict=True)
            labels = ",".join(map(str, y.indices[y.indptr[row] : y.indptr[row + 1]]))
            print(labels, *(f"{word}:{value:.6g}" for word, value in sorted(pairs)), file=file)


def predict_row(model: Any, features: csr_matrix, row: int) -> list[tuple[int, float]]:
    some = slice(features.indptr[row], features.indptr[row + 1])
    pairs = zip(features.indices[some].tolist(), features.data[some].tolist(), strict=True)
    found = model.predict(list(pairs), beam_size=BEAM, top_k=N_STORED)
    return sorted((label, value) for label, value in found if value >= FLOOR)


def assemble_rows(entries: list[list[tuple[int, float]]], n_labels: int) -> csr_matrix:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in entries])]).astype(np.int32)
    indices = np.array([label for row in entries for label, _ in row], dtype=np.int32)
    data = np.array([value for row in entries for _, value in row], dtype=np.float32)
    return csr_matrix((data, indices, indptr), shape=(len(entries), n_labels))
