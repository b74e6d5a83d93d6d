"""Train Lore's pair model: all-MiniLM-L6-v2 fine-tuned to read two texts together.

    uv run python benchmarks/encoder_sets.py --data DATA --data benchmarks/data --out sets
    uv run --with torch python benchmarks/train_pairs.py --sets sets --model MODEL --out OUT

The first head says what a newer statement does to an older one (`benchmarks/data/pairs.jsonl.gz`),
the second whether a passage answers a question (the sets of `train_encoder.py`), the third what a
sentence is worth after the one before it (`benchmarks/data/statements.jsonl.gz`). Needs torch;
minutes on a GPU, and `--steps` makes it a matter of seconds on a CPU. Writes
`lore-pairs.safetensors` (the difference to the base model in int8), `pairs.json` (the heads) and
`figures.json`. With `--held-out` each project, with some authors of pairs and a fifth of the
conversations, is left out once, and only figures are written and what the third head says of the
sentences left out (`readings.jsonl.gz`, for `train_statements.py`).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name that everybody knows
from tokenizers import Tokenizer

from train_encoder import (
    DEVICE,
    Corpus,
    Group,
    Texts,
    Weights,
    apply_difference,
    autocast,
    difference,
    encode,
    fold_of,
    is_trainable,
    mine,
    read_sets,
    read_weights,
    write_tensors,
)
from train_encoder import Recipe as MiningRecipe

PAIRS = Path(__file__).parent / "data" / "pairs.jsonl.gz"

RELATIONS = ("none", "same", "partly", "replaces")
"""The classes of the first head, in the order of its rows."""

KINDS = ("decision", "preference", "fact", "config", "workflow", "bug_fix", "architecture")
"""The classes of the third head, after two rows for a worth of at least 1 and of at least 2."""

REAL = "real"
"""Authors of pairs of real sessions, of which there are few: they are shown twice as often."""

SIDE_TOKENS = 120
"""Tokens of each of the two texts; the product cuts them alike."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Statements:
    """Two statements, and what the newer one does to the older one."""

    pair: Pair
    relation: int
    author: str
    project: str = ""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence after the one before it, with the share of readers for each row of the head."""

    id: str
    pair: Pair
    labels: tuple[float, ...]
    fold: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train."""

    epochs: int = 8
    batch: int = 48
    sentences: int = 64
    questions: int = 16
    questions_first: int = 1_000
    times: int = 2
    wrong: int = 5
    rate: float = 1.5e-4
    head_rate: float = 1e-3
    dropout: float = 0.1
    answers_weight: float = 0.5
    smoothing: float = 0.05
    strangers: int = 6
    steps: int = 0
    seed: int = 7


def read_pairs(path: Path) -> list[Statements]:
    """Return the labelled pairs; the sentence before the newer statement belongs to it."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [
        Statements(
            (row["older"], f"{row.get('before', '')} {row['newer']}".strip()),
            RELATIONS.index(row["relation"]),
            row["author"],
            row.get("project", ""),
        )
        for row in rows
    ]


def read_sentences(path: Path) -> list[Sentence]:
    """Return the labelled sentences; `pair` is what the product gives the model."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [_sentence(json.loads(line)) for line in stream]


def _sentence(row: dict[str, Any]) -> Sentence:
    readers = [row[name] for name in ("first", "second") if name in row]
    shares = [
        *(sum(one["worth"] >= least for one in readers) for least in (1, 2)),
        *(sum(one["kind"] == kind for one in readers) for kind in KINDS),
    ]
    return Sentence(
        row["id"], (row["context"], row["read"]),
        tuple(share / max(1, len(readers)) for share in shares), row["fold"],
    )  # fmt: skip


class PairTexts:
    """Tokenizes pairs: [CLS] first [SEP] second [SEP], each side cut."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._ids: dict[str, list[int]] = {}
        self._first, self._between = (
            int(self._tokenizer.token_to_id(token) or 0) for token in ("[CLS]", "[SEP]")
        )

    def _side(self, text: str) -> list[int]:
        if text not in self._ids:
            encoding = self._tokenizer.encode(text, add_special_tokens=False)
            self._ids[text] = encoding.ids[:SIDE_TOKENS]
        return self._ids[text]

    def batch(self, pairs: Sequence[Pair]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask of some pairs."""
        rows = [
            [self._first, *self._side(one), self._between, *self._side(other), self._between]
            for one, other in pairs
        ]
        both = np.zeros((2, len(rows), max(map(len, rows))), np.int64)
        for place, row in enumerate(rows):
            both[0, place, : len(row)] = row
            both[1, place, : len(row)] = 1
        ids, mask = torch.from_numpy(both).to(DEVICE)
        return ids, mask


@dataclass(slots=True)
class PairModel:
    """The weights and the heads."""

    weights: Weights
    heads: Weights = field(default_factory=dict)

    def vectors(self, texts: PairTexts, pairs: Sequence[Pair], dropout: float = 0) -> torch.Tensor:
        """Return the normalized vectors of pairs."""
        ids, mask = texts.batch(pairs)
        with autocast():
            return encode(self.weights, ids, mask, dropout).float()

    def head(self, name: str, vectors: torch.Tensor) -> torch.Tensor:
        """Return the scores of a head."""
        return F.linear(vectors, self.heads[f"{name}.weight"], self.heads[f"{name}.bias"])

    @torch.no_grad()
    def predict(self, name: str, texts: PairTexts, pairs: Sequence[Pair]) -> torch.Tensor:
        """Return the scores of a head for pairs."""
        parts = [
            self.head(name, self.vectors(texts, pairs[at : at + 512]))
            for at in range(0, len(pairs), 512)
        ]
        return torch.cat(parts)


def new_heads() -> Weights:
    """Return untrained heads."""
    heads = {}
    for name, rows in (
        ("relations", len(RELATIONS)), ("answers", 1), ("statements", 2 + len(KINDS)),
    ):  # fmt: skip
        heads[f"{name}.weight"] = torch.randn(rows, 384, device=DEVICE) * 0.5
        heads[f"{name}.bias"] = torch.zeros(rows, device=DEVICE)
    return heads


@dataclass(frozen=True, slots=True)
class TrainingSets:
    """What the model is trained on: pairs, questions, and labelled sentences."""

    statements: list[Statements]
    groups: list[Group]
    sentences: list[Sentence]


def train(base: Weights, texts: PairTexts, sets: TrainingSets, recipe: Recipe) -> PairModel:
    """Return a model that was trained on all kinds of pairs.

    Many questions teach it to read two texts together; then it learns all three heads, several
    times in another order, and the weights of these times are averaged.
    """
    started = time.time()
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    model = PairModel({name: tensor.clone() for name, tensor in base.items()}, new_heads())
    first = recipe.questions_first if sets.groups and not recipe.steps else 0
    model = run_steps(model, texts, replace(sets, statements=[], sentences=[]), recipe, first)
    steps = recipe.steps or recipe.epochs * max(1, len(sets.statements) // recipe.batch)
    models = [run_steps(model, texts, sets, recipe, steps) for _ in range(recipe.times)]
    print(f"  {len(sets.statements)} pairs, {len(sets.groups)} questions,"
          f" {first} and {recipe.times} x {steps} steps, {time.time() - started:.0f} s",
          flush=True)  # fmt: skip
    return PairModel(average([m.weights for m in models]), average([m.heads for m in models]))


def average(some: Sequence[Weights]) -> Weights:
    """Return the mean of some weights."""
    return {
        name: sum(one[name] for one in some) / len(some) if tensor.is_floating_point() else tensor
        for name, tensor in some[0].items()
    }


def run_steps(
    start: PairModel, texts: PairTexts, sets: TrainingSets, recipe: Recipe, steps: int
) -> PairModel:
    """Return the model after some steps; the rate falls over them if there are pairs."""
    model = PairModel(
        {name: tensor.clone() for name, tensor in start.weights.items()},
        {name: tensor.clone() for name, tensor in start.heads.items()},
    )
    trained = [n for n in model.weights if "word_embeddings" not in n and "position_ids" not in n]
    body = [model.weights[name].requires_grad_() for name in trained]
    heads = [tensor.requires_grad_() for tensor in model.heads.values()]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": recipe.rate}, {"params": heads, "lr": recipe.head_rate}],
        weight_decay=0.01,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (
            min(1.0, (step + 1) / 50) * (max(0.02, 1 - step / steps) if sets.statements else 1)
        ),
    )
    order: list[Statements] = []
    for _ in range(steps):
        loss = torch.zeros((), device=DEVICE)
        if sets.statements:
            if len(order) < recipe.batch:
                real = (one for one in sets.statements if one.author.startswith(REAL))
                order = [*sets.statements, *real]
                random.shuffle(order)
            batch, order = order[: recipe.batch], order[recipe.batch :]
            batch = [*batch, *strangers(sets.statements, recipe)]
            loss = relation_loss(model, texts, batch, recipe)
        if sets.sentences:
            some = random.choices(sets.sentences, k=recipe.sentences)
            loss = loss + statement_loss(model, texts, some, recipe)
        if sets.groups:
            asked = random.sample(sets.groups, min(recipe.questions, len(sets.groups)))
            weight = recipe.answers_weight if sets.statements else 1.0
            loss = loss + weight * answer_loss(model, texts, asked, recipe)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *heads], 1.0)
        optimizer.step()
        schedule.step()
    return PairModel(
        {name: tensor.detach() for name, tensor in model.weights.items()},
        {name: tensor.detach() for name, tensor in model.heads.items()},
    )


def strangers(statements: Sequence[Statements], recipe: Recipe) -> list[Statements]:
    """Return pairs of statements that have nothing to do with each other."""
    some = random.sample(statements, 2 * recipe.strangers)
    return [
        Statements((one.pair[0], other.pair[1]), 0, "")
        for one, other in zip(some[::2], some[1::2], strict=True)
    ]


def relation_loss(
    model: PairModel, texts: PairTexts, batch: Sequence[Statements], recipe: Recipe
) -> torch.Tensor:
    """Return the loss of the first head."""
    vectors = model.vectors(texts, [one.pair for one in batch], recipe.dropout)
    target = torch.tensor([one.relation for one in batch], device=DEVICE)
    scores = model.head("relations", vectors)
    return F.cross_entropy(scores, target, label_smoothing=recipe.smoothing)


def answer_loss(
    model: PairModel, texts: PairTexts, asked: Sequence[Group], recipe: Recipe
) -> torch.Tensor:
    """Return the loss of the second head: which passage answers, and whether each does."""
    pairs: list[Pair] = []
    for group in asked:
        pairs.append((group.question, random.choice(group.right)))
        pairs += [(group.question, text) for text in random.choices(group.wrong, k=recipe.wrong)]
    scores = model.head("answers", model.vectors(texts, pairs, recipe.dropout))[:, 0]
    table = scores.view(len(asked), recipe.wrong + 1)
    target = torch.zeros_like(table)
    target[:, 0] = 1
    each = F.binary_cross_entropy_with_logits(table, target)
    best = F.cross_entropy(table, torch.zeros(len(asked), dtype=torch.long, device=DEVICE))
    return each + best


def statement_loss(
    model: PairModel, texts: PairTexts, batch: Sequence[Sentence], recipe: Recipe
) -> torch.Tensor:
    """Return the loss of the third head: worth, and the kind of what is worth something."""
    vectors = model.vectors(texts, [one.pair for one in batch], recipe.dropout)
    target = torch.tensor([one.labels for one in batch], device=DEVICE)
    scores = model.head("statements", vectors)
    worth = F.binary_cross_entropy_with_logits(scores[:, :2], target[:, :2])
    kinds = -(target[:, 2:] * scores[:, 2:].log_softmax(1)).sum(1).mean()
    return 2 * worth + kinds


# Scores


@dataclass(frozen=True, slots=True)
class LabelledSets:
    """All that is labelled, questions by project."""

    statements: list[Statements]
    groups: dict[str, list[Group]]
    sentences: list[Sentence]


def relation_figures(
    model: PairModel, texts: PairTexts, statements: Sequence[Statements]
) -> dict[str, Any]:
    """Return accuracy, and precision and recall of 'replaces' at some thresholds."""
    scores = model.predict("relations", texts, [one.pair for one in statements]).softmax(1)
    truth = np.array([one.relation for one in statements])
    chance = scores.cpu().numpy()
    row: dict[str, Any] = {"pairs": len(truth), "accuracy": _share(chance.argmax(1) == truth)}
    replaces = RELATIONS.index("replaces")
    for threshold in (0.3, 0.5, 0.7, 0.85, 0.95):
        said = chance[:, replaces] >= threshold
        right = said & (truth == replaces)
        row[f"at {threshold}"] = [
            _share(right[said]), _share(right[truth == replaces]),
        ]  # fmt: skip
    return row


def answer_figures(
    model: PairModel, texts: PairTexts, groups: Sequence[Group], most: int = 600
) -> dict[str, Any]:
    """Return how often the right passage comes first of ten, and the area under the curve."""
    random.seed(1)
    chosen = random.sample(list(groups), min(most, len(groups)))
    pairs = [
        (group.question, text) for group in chosen for text in (group.right[0], *group.wrong[:9])
    ]
    scores = model.predict("answers", texts, pairs)[:, 0].cpu().numpy()
    first, wins, at = [], [], 0
    for group in chosen:
        row = scores[at : at + 1 + len(group.wrong[:9])]
        at += len(row)
        first.append(row[0] > row[1:].max())
        wins.append(np.mean(row[0] > row[1:]))
    return {"questions": len(chosen), "first": _share(np.array(first)), "auc": _share(wins)}


def _share(values: Any) -> float:
    return round(100 * float(np.mean(values)), 1) if len(values) else 0.0


def hold_out(
    base: Weights,
    texts: PairTexts,
    sets: LabelledSets,
    recipe: Recipe,
    chosen: list[str],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Leave each project out once; return the scores, and the readings of what was left out."""
    figures: dict[str, Any] = {}
    readings: list[dict[str, Any]] = []
    projects = sorted({one.fold for one in sets.sentences if not one.fold.startswith("chats")})
    authors = sorted({one.author for one in sets.statements if not one.author.startswith(REAL)})
    for number, project in enumerate(projects):
        if chosen and project not in chosen:
            continue
        apart = set(authors[number :: len(projects)])
        folds = {project, f"chats {number}"}
        learned = [o for o in sets.statements if o.author not in apart and o.project != project]
        asked = [g for name, some in sets.groups.items() if name != project for g in some]
        read = [one for one in sets.sentences if one.fold not in folds]
        model = train(base, texts, TrainingSets(learned, asked, read), recipe)
        for author in sorted(apart):
            pairs = [one for one in sets.statements if one.author == author]
            figures[author] = relation_figures(model, texts, pairs)
            print(author, figures[author], flush=True)
        if sets.groups.get(project):
            figures[f"{project} questions"] = answer_figures(model, texts, sets.groups[project])
        for fold in sorted(folds):
            rows = [one for one in sets.sentences if one.fold == fold]
            figures[fold] = statement_figures(model, texts, rows)
            print(fold, figures[fold], flush=True)
            readings += read_out(model, texts, rows)
    return figures, readings


def read_out(model: PairModel, texts: PairTexts, rows: Sequence[Sentence]) -> list[dict[str, Any]]:
    """Return what the third head says of sentences."""
    if not rows:
        return []
    scores = model.predict("statements", texts, [one.pair for one in rows]).cpu().numpy()
    return [
        {"id": one.id, "scores": np.round(row.astype(float), 3).tolist()}
        for one, row in zip(rows, scores, strict=True)
    ]


def statement_figures(
    model: PairModel, texts: PairTexts, rows: Sequence[Sentence]
) -> dict[str, Any]:
    """Return the area under the curve of worth, and the share of right kinds."""
    if not rows:
        return {}
    scores = model.predict("statements", texts, [one.pair for one in rows]).cpu().numpy()
    labels = np.array([one.labels for one in rows])
    figures: dict[str, Any] = {"sentences": len(rows)}
    for place, name in enumerate(("auc worth 1", "auc worth 2")):
        figures[name] = _area(scores[:, place], labels[:, place] > 0.5)
    some = labels[:, 2:].sum(axis=1) > 0
    figures["kind"] = _share(scores[some, 2:].argmax(1) == labels[some, 2:].argmax(1))
    return figures


def _area(scores: Any, truth: Any) -> float:
    ranks = scores.argsort().argsort()
    right, wrong = truth.sum(), (~truth).sum()
    if not right or not wrong:
        return 0.0
    above = ranks[truth].sum() - right * (right - 1) / 2
    return round(100 * float(above / (right * wrong)), 1)


def mine_groups(base: Weights, file: Path, corpora: list[Corpus]) -> dict[str, list[Group]]:
    """Return the questions of each project or part of the conversations, with passages."""
    texts = Texts(file)
    groups: dict[str, list[Group]] = defaultdict(list)
    for corpus in corpora:
        for group in mine(base, texts, [corpus], MiningRecipe()):
            groups[fold_of(corpus) or corpus.set].append(group)
    return groups


def main() -> None:
    """Train and evaluate, and write the difference to the base model and the heads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, default=PAIRS)
    parser.add_argument("--sentences", type=Path, required=True, help="of train_statements.py")
    parser.add_argument("--model", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--start", type=Path, help="a difference to start from, such as lore-mini")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", nargs="*", help="leave out these projects, or all, in turn")
    parser.add_argument("--epochs", type=int, default=Recipe().epochs)
    parser.add_argument("--questions-first", type=int, default=Recipe().questions_first)
    parser.add_argument("--times", type=int, default=Recipe().times, help="models to average")
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (file,) = options.model.glob("*.safetensors")
    base = read_weights(file)
    start = apply_difference(base, read_difference(options.start)) if options.start else base
    tokenizer = options.model / "tokenizer.json"
    texts = PairTexts(tokenizer)
    corpora = [corpus for corpus in read_sets(options.sets) if is_trainable(corpus)]
    sets = LabelledSets(
        read_pairs(options.pairs),
        mine_groups(start, tokenizer, corpora),
        read_sentences(options.sentences),
    )
    recipe = Recipe(
        epochs=options.epochs,
        steps=options.steps,
        questions_first=options.questions_first,
        times=options.times,
    )
    if options.held_out is not None:
        figures, readings = hold_out(start, texts, sets, recipe, options.held_out)
        with gzip.open(options.out / "readings.jsonl.gz", "wt", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in readings)
    else:
        asked = [group for some in sets.groups.values() for group in some]
        model = train(start, texts, TrainingSets(sets.statements, asked, sets.sentences), recipe)
        figures = {"trained on": relation_figures(model, texts, sets.statements)}
        write_model(options.out, base, model, sorted(sets.groups))
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1))


def read_difference(path: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a difference to the base model."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    kinds = {"F32": np.float32, "I8": np.int8}
    tensors = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__":
            first, end = (8 + size + offset for offset in entry["data_offsets"])
            array = np.frombuffer(raw[first:end], kinds[entry["dtype"]])
            tensors[name] = array.reshape(entry["shape"])
    return tensors


def write_model(
    out: Path,
    base: Weights,
    model: PairModel,
    sets: list[str],
    script: str = "benchmarks/train_pairs.py",
) -> None:
    """Write the difference to the base model, and the heads as JSON."""
    write_tensors(
        out / "lore-pairs.safetensors",
        difference(base, model.weights),
        {"base": "all-MiniLM-L6-v2", "script": script},
    )
    heads = {
        name: np.round(tensor.cpu().numpy().astype(float), 5).tolist()
        for name, tensor in model.heads.items()
    }
    content = {"script": script, "sets": sets, "relations": RELATIONS, "heads": heads}
    (out / "pairs.json").write_text(json.dumps(content))


if __name__ == "__main__":
    main()
