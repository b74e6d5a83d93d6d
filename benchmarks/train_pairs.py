"""Train Lore's pair model: all-MiniLM-L6-v2 fine-tuned to read two texts together.

    uv run python benchmarks/encoder_sets.py --data DATA --data benchmarks/data --out sets
    uv run --with torch python benchmarks/train_pairs.py --sets sets --model MODEL --out OUT

The first head says what a newer statement does to an older one (`benchmarks/data/pairs.jsonl.gz`),
the second whether a passage answers a question (the sets of `train_encoder.py`). Needs torch;
minutes on a GPU, and `--steps` makes it a matter of seconds on a CPU. Writes
`lore-pairs.safetensors` (the difference to the base model in int8), `pairs.json` (the heads) and
`figures.json`. With `--held-out` each author of pairs and each of some projects is left out once,
and nothing is written but figures.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train."""

    epochs: int = 8
    batch: int = 48
    questions: int = 16
    questions_first: int = 1_500
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
        )
        for row in rows
    ]


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
    """The weights and the two heads."""

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
    for name, rows in (("relations", len(RELATIONS)), ("answers", 1)):
        heads[f"{name}.weight"] = torch.randn(rows, 384, device=DEVICE) * 0.5
        heads[f"{name}.bias"] = torch.zeros(rows, device=DEVICE)
    return heads


def train(
    base: Weights,
    texts: PairTexts,
    statements: list[Statements],
    groups: list[Group],
    recipe: Recipe,
) -> PairModel:
    """Return a model that was trained on both kinds of pairs at once."""
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    model = PairModel({name: tensor.clone() for name, tensor in base.items()}, new_heads())
    trained = [n for n in model.weights if "word_embeddings" not in n and "position_ids" not in n]
    body = [model.weights[name].requires_grad_() for name in trained]
    heads = [tensor.requires_grad_() for tensor in model.heads.values()]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": recipe.rate}, {"params": heads, "lr": recipe.head_rate}],
        weight_decay=0.01,
    )
    # Many questions teach it to read two texts together; the few pairs come last.
    first = recipe.questions_first if groups and not recipe.steps else 0
    total = first + (recipe.steps or recipe.epochs * max(1, len(statements) // recipe.batch))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda step: (
            min(1.0, (step + 1) / 50) * max(0.02, 1 - max(0, step - first) / (total - first))
        ),
    )
    started = time.time()
    order: list[Statements] = []
    for step in range(total):
        loss = torch.zeros((), device=DEVICE)
        if step >= first:
            if len(order) < recipe.batch:
                order = [*statements, *(one for one in statements if one.author.startswith(REAL))]
                random.shuffle(order)
            batch, order = order[: recipe.batch], order[recipe.batch :]
            loss = relation_loss(model, texts, [*batch, *strangers(statements, recipe)], recipe)
        if groups:
            asked = random.sample(groups, min(recipe.questions, len(groups)))
            weight = recipe.answers_weight if step >= first else 1.0
            loss = loss + weight * answer_loss(model, texts, asked, recipe)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *heads], 1.0)
        optimizer.step()
        schedule.step()
    print(f"  {len(statements)} pairs, {len(groups)} questions, {total} steps,"
          f" {time.time() - started:.0f} s", flush=True)  # fmt: skip
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


# Scores


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
    statements: list[Statements],
    groups: dict[str, list[Group]],
    recipe: Recipe,
    chosen: list[str],
) -> dict[str, Any]:
    """Train without each author and, beside it, without a project; return their scores."""
    figures: dict[str, Any] = {}
    authors = sorted({one.author for one in statements})
    projects = sorted(name for name in groups if not name.startswith("chats"))
    for number, author in enumerate(authors):
        if chosen and author not in chosen:
            continue
        held = set(projects[number :: len(authors)])
        learned = [one for one in statements if one.author != author]
        asked = [g for name, some in groups.items() if name not in held for g in some]
        model = train(base, texts, learned, asked, recipe)
        apart = [one for one in statements if one.author == author]
        figures[author] = relation_figures(model, texts, apart)
        print(author, figures[author], flush=True)
        for name in sorted(held):
            figures[name] = answer_figures(model, texts, groups[name])
            print(name, figures[name], flush=True)
    return figures


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
    parser.add_argument("--model", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--start", type=Path, help="a difference to start from, such as lore-mini")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--held-out", nargs="*", help="leave out these authors, or all, in turn")
    parser.add_argument("--epochs", type=int, default=Recipe().epochs)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (file,) = options.model.glob("*.safetensors")
    base = read_weights(file)
    start = apply_difference(base, read_difference(options.start)) if options.start else base
    tokenizer = options.model / "tokenizer.json"
    texts = PairTexts(tokenizer)
    statements = read_pairs(options.pairs)
    corpora = [corpus for corpus in read_sets(options.sets) if is_trainable(corpus)]
    groups = mine_groups(start, tokenizer, corpora)
    recipe = Recipe(epochs=options.epochs, steps=options.steps)
    if options.held_out is not None:
        figures = hold_out(start, texts, statements, groups, recipe, options.held_out)
    else:
        asked = [group for some in groups.values() for group in some]
        model = train(start, texts, statements, asked, recipe)
        figures = {"trained on": relation_figures(model, texts, statements)}
        write_model(options.out, base, model, sorted(groups))
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


def write_model(out: Path, base: Weights, model: PairModel, sets: list[str]) -> None:
    """Write the difference to the base model, and the heads as JSON."""
    script = "benchmarks/train_pairs.py"
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
