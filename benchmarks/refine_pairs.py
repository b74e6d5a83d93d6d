"""Train the pair model on with histories in which something changes in passing.

    uv run --with torch python benchmarks/refine_pairs.py --start DIR --model MODEL --out OUT

Body and first head of what `train_pairs.py` wrote to DIR go on, with its pairs, more of real
sessions, and `data/changes.jsonl.gz`: what was said early and late in one project, and which of the
late sentences changes which early one. Nearly all other pairs of a history are near misses. The
other two heads stay as they are, and the body learns to give them what it gave before, for
sentences of `statements.jsonl.gz` and questions of `chats-lore.jsonl.gz`: what was trained on their
scores stays right. Needs torch; minutes on a GPU, and `--steps` makes it a matter of seconds on a
CPU. Writes `lore-pairs.safetensors`, `pairs.json` and `figures.json`; with `--folds` only figures,
some authors of histories and some projects left out at a time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name that everybody knows

from train_encoder import DEVICE, Texts, Weights, apply_difference, embed, read_weights
from train_pairs import (
    PAIRS,
    RELATIONS,
    Pair,
    PairModel,
    PairTexts,
    Statements,
    average,
    read_difference,
    read_pairs,
    write_model,
)

DATA = Path(__file__).parent / "data"
HISTORIES = DATA / "changes.jsonl.gz"
APART = ("j", "k")
"""Authors of pairs that no model is trained on: see the card of the data."""

FOLDS = 3
NEAR, FAR = 3, 1
"""Pairs of a late sentence that change nothing: the nearest early ones, and others at random."""

Labelled = tuple[Pair, int]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train: what a batch has of each kind, the steps and the rates."""

    invented: int = 36
    real: int = 16
    linked: int = 24
    unlinked: int = 40
    strangers: int = 6
    taught: int = 64
    taught_weight: float = 0.5
    steps: int = 2_000
    times: int = 2
    rate: float = 5e-5
    head_rate: float = 5e-4
    dropout: float = 0.1
    smoothing: float = 0.05
    led: float = 0.3
    seed: int = 7


@dataclass(frozen=True, slots=True)
class History:
    """What was said early and late, and what late sentences do to early ones."""

    author: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    links: dict[tuple[int, int], int]


def read_histories(path: Path) -> list[History]:
    """Return the histories of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [
        History(
            row["id"][0],
            tuple(row["old"]),
            tuple(row["new"]),
            {(i, j): RELATIONS.index(name) for i, j, name in row["links"]},
        )
        for row in rows
    ]


def near_misses(
    history: History, cosines: np.ndarray, chance: random.Random
) -> Iterator[tuple[int, int]]:
    """Yield the places of pairs that change nothing: near ones, and a few others."""
    for j in range(len(history.new)):
        free = [i for i in range(len(history.old)) if (i, j) not in history.links]
        free.sort(key=lambda i: -cosines[i, j])
        far = free[NEAR:]
        for i in (*free[:NEAR], *chance.sample(far, min(FAR, len(far)))):
            yield i, j


class Sets:
    """Pairs by kind, as the product reads them."""

    def __init__(self, pairs: list[Statements], histories: list[History], base: Weights,
                 tokenizer: Path) -> None:  # fmt: skip
        self.invented: list[Labelled] = []
        self.real: list[Labelled] = []
        for row in pairs:
            kind = self.real if row.author.startswith("real") else self.invented
            kind.append((row.pair, row.relation))
        self.linked: list[tuple[History, int, int]] = []
        self.unlinked: list[tuple[History, int, int]] = []
        chance, texts = random.Random(3), Texts(tokenizer)
        sentences = [text for one in histories for text in (*one.old, *one.new)]
        rows = embed(base, texts, sentences).cpu().numpy() if sentences else np.zeros((0, 1))
        at = 0
        for one in histories:
            old, new = rows[at : at + len(one.old)], rows[at + len(one.old) :][: len(one.new)]
            at += len(one.old) + len(one.new)
            self.linked += [(one, i, j) for i, j in one.links]
            self.unlinked += [(one, i, j) for i, j in near_misses(one, old @ new.T, chance)]

    def batch(self, recipe: Recipe) -> list[Labelled]:
        """Return a batch of pairs of all kinds."""
        batch = random.sample(self.invented, recipe.invented)
        batch += random.sample(self.real, min(len(self.real), recipe.real))
        some = random.sample(self.invented, 2 * recipe.strangers)
        batch += [
            ((one[0][0], other[0][1]), 0) for one, other in zip(some[::2], some[1::2], strict=True)
        ]
        for kind, count in ((self.linked, recipe.linked), (self.unlinked, recipe.unlinked)):
            batch += [
                labelled(*one, recipe.led) for one in random.sample(kind, min(len(kind), count))
            ]
        return batch


def labelled(history: History, i: int, j: int, led: float = 0.0) -> Labelled:
    """Return a pair of a history, sometimes led by a sentence that changes nothing there."""
    before = ""
    if random.random() < led:
        others = [
            text for k, text in enumerate(history.new) if k != j and (i, k) not in history.links
        ]
        before = f"{random.choice(others)} " if others else ""
    return (history.old[i], before + history.new[j]), history.links.get((i, j), 0)


def read_taught() -> list[Pair]:
    """Return pairs for the other two heads: sentences after others, questions and passages."""
    rows = _rows("statements.jsonl.gz")
    uses = ("person", "agent", "talk")
    pairs = [(f"{random.choice(uses)}: {row['before']}", row["text"]) for row in rows]
    pairs += [("", row["text"]) for row in rows[::3]]
    for talk in _rows("chats-lore.jsonl.gz"):
        texts = {turn["id"]: turn["text"] for turn in talk["turns"]}
        everything = list(texts.values())
        for question in talk["questions"]:
            right = [texts[id_] for id_ in question["evidence"] if id_ in texts]
            pairs += [(question["question"], text) for text in right[:1]]
            pairs.append((question["question"], random.choice(everything)))
    for path in sorted(DATA.glob("coding-qa*.jsonl.gz")):
        asked = [row for row in _rows(path.name) if row.get("answer")]
        pairs += [(row["question"], row["answer"]) for row in asked]
        pairs += [(row["question"], random.choice(asked)["answer"]) for row in asked]
    return pairs


def _rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as stream:
        return [json.loads(line) for line in stream]


class Teacher:
    """What the model said of pairs for the other two heads before."""

    HEADS = ("statements", "answers")

    def __init__(self, model: PairModel, texts: PairTexts, pairs: Sequence[Pair]) -> None:
        self.pairs = list(pairs)
        self.scores = [model.predict(name, texts, self.pairs) for name in self.HEADS]

    def loss(self, model: PairModel, texts: PairTexts, recipe: Recipe) -> torch.Tensor:
        """Return how far the model is from what it said of some pairs."""
        places = random.sample(range(len(self.pairs)), recipe.taught)
        vectors = model.vectors(texts, [self.pairs[at] for at in places], 0)
        losses = [
            F.mse_loss(model.head(name, vectors), scores[places])
            for name, scores in zip(self.HEADS, self.scores, strict=True)
        ]
        return torch.stack(losses).sum()


def train(start: PairModel, texts: PairTexts, sets: Sets, teacher: Teacher,
          recipe: Recipe) -> PairModel:  # fmt: skip
    """Return the average of models that were trained in another order each."""
    models = [
        train_once(start, texts, sets, teacher, replace(recipe, seed=recipe.seed + number))
        for number in range(recipe.times)
    ]
    return PairModel(average([m.weights for m in models]), average([m.heads for m in models]))


def train_once(start: PairModel, texts: PairTexts, sets: Sets, teacher: Teacher,
               recipe: Recipe) -> PairModel:  # fmt: skip
    """Return the model after some steps; the rate falls over them."""
    started = time.time()
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    weights = {name: tensor.clone() for name, tensor in start.weights.items()}
    heads = {name: tensor.clone() for name, tensor in start.heads.items()}
    model = PairModel(weights, heads)
    body = [
        tensor.requires_grad_()
        for name, tensor in weights.items()
        if "word_embeddings" not in name and "position_ids" not in name
    ]
    head = [heads[f"relations.{part}"].requires_grad_() for part in ("weight", "bias")]
    optimizer = torch.optim.AdamW(
        [{"params": body, "lr": recipe.rate}, {"params": head, "lr": recipe.head_rate}],
        weight_decay=0.01,
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 50) * max(0.02, 1 - step / recipe.steps)
    )
    for _ in range(recipe.steps):
        batch = sets.batch(recipe)
        vectors = model.vectors(texts, [pair for pair, _ in batch], recipe.dropout)
        target = torch.tensor([relation for _, relation in batch], device=DEVICE)
        loss = F.cross_entropy(
            model.head("relations", vectors), target, label_smoothing=recipe.smoothing
        ) + recipe.taught_weight * teacher.loss(model, texts, recipe)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*body, *head], 1.0)
        optimizer.step()
        schedule.step()
    print(f"  {recipe.steps} steps, {time.time() - started:.0f} s", flush=True)
    return PairModel(
        {name: tensor.detach() for name, tensor in weights.items()},
        {name: tensor.detach() for name, tensor in heads.items()},
    )


def figures_of(model: PairModel, texts: PairTexts, pairs: Sequence[Labelled]) -> dict[str, Any]:
    """Return how well changes are told from the rest: area, and counts at some thresholds."""
    if not pairs:
        return {}
    scores = model.predict("relations", texts, [pair for pair, _ in pairs]).softmax(1)
    change = scores[:, RELATIONS.index("partly") :].sum(1).cpu().numpy()
    truth = np.array([relation for _, relation in pairs]) >= RELATIONS.index("partly")
    row: dict[str, Any] = {"pairs": len(pairs), "changes": int(truth.sum())}
    if truth.any() and not truth.all():
        ranks = change.argsort().argsort()
        wins = ranks[truth].sum() - truth.sum() * (truth.sum() - 1) / 2
        row["auc"] = round(100 * float(wins / (truth.sum() * (~truth).sum())), 1)
    for threshold in (0.15, 0.3, 0.4, 0.5, 0.7, 0.9):
        called = change >= threshold
        row[str(threshold)] = [int(called.sum()), int((called & truth).sum())]
    return row


def report(name: str, before: PairModel, after: PairModel, texts: PairTexts,
           pairs: Sequence[Labelled]) -> dict[str, Any]:  # fmt: skip
    """Print and return the figures of both models."""
    row = {"before": figures_of(before, texts, pairs), "after": figures_of(after, texts, pairs)}
    for which, figures in row.items():
        print(f"{name:<14} {which:<7} {json.dumps(figures)}", flush=True)
    return row


def natural(sets: Sets) -> list[Labelled]:
    """Return the pairs of histories, plain."""
    return [labelled(*one) for one in (*sets.linked, *sets.unlinked)]


def main() -> None:
    """Train, print figures, and write the model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--start", type=Path, required=True, help="what train_pairs.py wrote")
    parser.add_argument("--model", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--histories", type=Path, default=HISTORIES)
    parser.add_argument("--folds", action="store_true", help="only figures of what is left out")
    parser.add_argument("--steps", type=int, default=Recipe().steps)
    parser.add_argument("--times", type=int, default=Recipe().times, help="models to average")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    recipe = Recipe(steps=options.steps, times=options.times)
    (file,) = options.model.glob("*.safetensors")
    base, tokenizer = read_weights(file), options.model / "tokenizer.json"
    content = json.loads((options.start / "pairs.json").read_bytes())
    start = PairModel(
        apply_difference(base, read_difference(options.start / "lore-pairs.safetensors")),
        {
            name: torch.tensor(np.array(rows, np.float32), device=DEVICE)
            for name, rows in content["heads"].items()
        },
    )
    texts = PairTexts(tokenizer)
    random.seed(recipe.seed)
    teacher = Teacher(start, texts, read_taught())
    pairs, histories = read_pairs(PAIRS), read_histories(options.histories)
    known = [one for one in pairs if one.author not in APART]
    apart = [(one.pair, one.relation) for one in pairs if one.author in APART]
    figures: dict[str, Any] = {}
    if options.folds:
        authors = sorted({one.author for one in histories})
        projects = sorted({one.project for one in pairs if one.project})
        for number in range(FOLDS):
            out, apart_authors = set(projects[number::FOLDS]), authors[number::FOLDS]
            learned, unseen = (
                Sets(
                    [one for one in known if (one.project in out) == is_out],
                    [one for one in histories if (one.author in apart_authors) == is_out],
                    base,
                    tokenizer,
                )
                for is_out in (False, True)
            )
            model = train(start, texts, learned, teacher, recipe)
            for name, some in (("late", natural(unseen)), ("real", unseen.real), ("apart", apart)):
                title = f"{''.join(apart_authors)} {name}"
                figures[title] = report(title, start, model, texts, some)
    else:
        model = train(start, texts, Sets(known, histories, base, tokenizer), teacher, recipe)
        figures["apart"] = report("apart", start, model, texts, apart)
        write_model(options.out, base, model, content["sets"], "benchmarks/refine_pairs.py")
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
