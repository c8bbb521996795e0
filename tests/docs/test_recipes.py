"""The recipes for other libraries run, where the library is installed; those with prompts are in test_guide.py."""

import ast
import re

import numpy as np
import pytest

from pages import DOCS, FENCED, blocks

PAGE = DOCS / "recipes.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
NOT_RUN = {"TabPFN"}  # needs weights
SECTIONS = {
    title: [code for language, code in FENCED.findall(section) if language == "python"]
    for title, section in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", TEXT, flags=re.DOTALL | re.MULTILINE)
}
RECIPES = [title for title, code in SECTIONS.items() if code and title not in NOT_RUN]


def example():
    """Return the names that the first block of the page defines."""
    names = {}
    lines = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", blocks(TEXT, "pycon")[0], flags=re.MULTILINE)
    exec("\n".join(lines), names)  # noqa: S102
    return names


def prepare_spark(names):
    sql, linalg = pytest.importorskip("pyspark.sql"), pytest.importorskip("pyspark.ml.linalg")
    spark = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = [
        (linalg.Vectors.dense(row.tolist()), float(code)) for row, code in zip(names["X"], names["code"], strict=True)
    ]
    frames = [spark.createDataFrame(rows[part::3], ["features", "label"]) for part in range(3)]
    return dict(zip(("train", "validation", "test"), frames, strict=True))


def check_spark(names):
    predicted = np.array([row[0] for row in names["decisions"].collect()])
    proba = np.array(
        [row[0].toArray() for row in names["forest"].transform(names["test"]).select("probability").collect()]
    )
    np.testing.assert_array_equal(predicted, names["rule"].predict(proba))


def prepare_trainer(names):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(vocab_size=50, num_labels=3, max_position_embeddings=16, **sizes)
    rng = np.random.default_rng(0)
    tokens = torch.tensor(rng.integers(0, 50, (300, 8)))
    rows = [{"input_ids": row, "labels": int(row[0]) % 3} for row in tokens]
    return {
        "model": transformers.BertForSequenceClassification(config),
        "arguments": transformers.TrainingArguments("out", num_train_epochs=1, report_to="none", use_cpu=True),
        "train": rows[:100],
        "validation": rows[100:200],
        "test": rows[200:],
    }


def prepare_encoder(names):
    transformers, tokenizers = pytest.importorskip("sentence_transformers"), pytest.importorskip("tokenizers")
    try:
        from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    except ImportError:
        from sentence_transformers.models import StaticEmbedding

    nouns = [f"noun{number}" for number in range(40)]
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({noun: j for j, noun in enumerate(nouns)}, unk_token=nouns[0])
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    rng = np.random.default_rng(0)
    duplicate = rng.random(200) < 0.3
    first = [" ".join(rng.choice(nouns, 6)) for _ in duplicate]
    other = [" ".join(rng.choice(nouns, 6)) for _ in duplicate]
    second = [f"{a} noun1" if same else b for a, b, same in zip(first, other, duplicate, strict=True)]
    encoder = transformers.SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=16)])
    return {"encoder": encoder, "first_texts": first, "second_texts": second, "is_duplicate": duplicate.astype(int)}


def prepare_networks(names):
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(20, 3)

        def forward(self, X):
            return torch.softmax(self.layer(X), dim=-1)

    class KerasModel:
        def predict(self, X):
            return names["LogisticRegression"]().fit(names["X"], names["code"]).predict_proba(X)

    return {"Network": Network, "keras_model": KerasModel(), "X_validation": names["X"], "y_validation": names["code"]}


PREPARE = {
    "Spark ML": prepare_spark,
    "Hugging Face Trainer": prepare_trainer,
    "sentence-transformers": prepare_encoder,
    "skorch and Keras": prepare_networks,
}
CHECK = {"Spark ML": check_spark}


def test_every_recipe_is_in_the_table():
    listed = set(re.findall(r"^\| \[(.*?)\]", TEXT, flags=re.MULTILINE))
    assert not TEXT or set(SECTIONS) >= listed >= set(RECIPES) | NOT_RUN


@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize(
    "title", [pytest.param(title, marks=pytest.mark.catboost if title == "CatBoost" else ()) for title in RECIPES]
)
def test_a_recipe(title, tmp_path, monkeypatch):
    code = "\n".join(SECTIONS[title])
    for node in ast.walk(ast.parse(code)):
        module = (
            node.module
            if isinstance(node, ast.ImportFrom)
            else node.names[0].name
            if isinstance(node, ast.Import)
            else ""
        )
        if module:
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    names = example()
    names |= PREPARE.get(title, lambda names: {})(names)
    exec(code, names)  # noqa: S102
    CHECK.get(title, lambda names: None)(names)
