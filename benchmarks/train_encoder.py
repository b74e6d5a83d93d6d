"""Train Lore's encoder: all-MiniLM-L6-v2 fine-tuned on questions and the passages that answer them.

    uv run python benchmarks/encoder_sets.py --data DATA --data benchmarks/data --out sets
    uv run --with torch python benchmarks/train_encoder.py --sets sets --model MODEL --out OUT

Needs torch; minutes on a GPU, and `--steps` makes it a matter of seconds on a CPU. Writes
`lore-mini.safetensors`: the difference to the base model in int8, and `figures.json`: R@1/5/10 of
the base and of the trained model, by cosine and fused with BM25. With `--folds 0 1 2 3 4` each
project and each fifth of the conversations is left out once: the scores of what was not trained
on, and its vectors, on which `train_recall.py` trains the ranking. Sets whose licence forbids it
(LoCoMo, BEAM) are never trained on.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import random
import struct
import time
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the name that everybody knows
from tokenizers import Tokenizer

EVALUATED_ONLY = ("locomo", "beam", "multihop-2wiki")
"""Sets whose licence forbids training, and one kept to see whether general retrieval suffers."""

CHAT_FOLDS = 5
"""Conversations are held out by fifths, one beside each project."""

VECTORS_A_FILE = 19_000

HEADS, EPSILON = 12, 1e-12
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Weights = dict[str, torch.Tensor]


@dataclass(slots=True)
class Question:
    """A question with its groups of documents (one of each is needed) and BM25 candidates."""

    text: str
    category: str
    groups: list[list[int]]
    bm25: list[tuple[int, float]]
    vector: torch.Tensor | None = None

    def right(self) -> set[int]:
        """Return all documents that answer it or a part of it."""
        return {place for group in self.groups for place in group}


@dataclass(slots=True)
class Corpus:
    """One conversation or project: documents as passages, and questions."""

    set: str
    name: str
    passages: list[list[str]]
    questions: list[Question] = field(default_factory=list)


def read_sets(folder: Path) -> list[Corpus]:
    """Return the corpora of all sets of a folder."""
    corpora: list[Corpus] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                row = json.loads(line)
                if "passages" in row:
                    name = path.name.removesuffix(".jsonl.gz")
                    corpora.append(Corpus(name, row["name"], row["passages"]))
                else:
                    corpora[-1].questions.append(
                        Question(row["question"], row["category"], row["groups"], row["bm25"])
                    )
    return corpora


# The model


def read_weights(path: Path) -> Weights:
    """Return the float tensors of a safetensors file."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    kinds = {"F32": np.float32, "F16": np.float16}
    weights = {}
    for name, entry in json.loads(raw[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] in kinds:
            first, end = (8 + size + offset for offset in entry["data_offsets"])
            array = np.frombuffer(raw[first:end], kinds[entry["dtype"]]).astype(np.float32)
            shape = entry["shape"]
            weights[name] = torch.tensor(array.reshape(shape), device=DEVICE)
    return weights


def encode(
    weights: Weights, ids: torch.Tensor, mask: torch.Tensor, dropout: float = 0.0
) -> torch.Tensor:
    """Return the normalized mean of the last layer over the tokens of each text."""
    length = ids.shape[1]

    def linear(name: str, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def normalise(name: str, x: torch.Tensor) -> torch.Tensor:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return F.layer_norm(x, weight.shape, weight, bias, EPSILON)

    def drop(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, dropout, training=dropout > 0)

    x = F.embedding(ids, weights["embeddings.word_embeddings.weight"])
    x = x + weights["embeddings.position_embeddings.weight"][:length]
    x = x + weights["embeddings.token_type_embeddings.weight"][0]
    x = drop(normalise("embeddings.LayerNorm", x))
    allowed = mask[:, None, None, :].bool()
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder."))
    for index in range(layers):
        prefix = f"encoder.layer.{index}."
        attention = prefix + "attention."
        query, key, value = (
            linear(f"{attention}self.{part}", x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        mixed = linear(attention + "output.dense", mixed.transpose(1, 2).flatten(2))
        x = normalise(attention + "output.LayerNorm", x + drop(mixed))
        hidden = linear(prefix + "output.dense", F.gelu(linear(prefix + "intermediate.dense", x)))
        x = normalise(prefix + "output.LayerNorm", x + drop(hidden))
    weight = mask.unsqueeze(-1).float()
    return F.normalize((x.float() * weight).sum(1) / weight.sum(1), dim=-1)


class Texts:
    """Tokenizes texts once and makes batches of them."""

    def __init__(self, file: Path, limit: int = 256) -> None:
        self._tokenizer = Tokenizer.from_file(str(file))
        self._tokenizer.enable_truncation(limit)
        self._tokenizer.no_padding()
        self._ids: dict[str, np.ndarray] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Tokenize new texts, all at once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        for text, encoding in zip(new, self._tokenizer.encode_batch(new), strict=True):
            self._ids[text] = np.array(encoding.ids, np.int32)

    def batch(self, texts: Sequence[str], most: int = 256) -> tuple[torch.Tensor, torch.Tensor]:
        """Return token ids and mask of some texts."""
        rows = [self._ids[text][:most] for text in texts]
        longest = max(map(len, rows))
        both = np.zeros((2, len(rows), longest), np.int64)
        for place, row in enumerate(rows):
            both[0, place, : len(row)] = row
            both[1, place, : len(row)] = 1
        ids, mask = torch.from_numpy(both).to(DEVICE)
        return ids, mask

    def length(self, text: str) -> int:
        """Return the number of tokens of a text."""
        return len(self._ids[text])


def autocast() -> torch.autocast:
    """Return the context in which matrices are multiplied in bfloat16, on a GPU."""
    return torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda")


@torch.no_grad()
def embed(weights: Weights, texts: Texts, items: Sequence[str], rows: int = 1024) -> torch.Tensor:
    """Return the vectors of texts."""
    texts.add(items)
    order = sorted(range(len(items)), key=lambda place: texts.length(items[place]))
    vectors = torch.empty((len(items), 384), device=DEVICE)
    for start in range(0, len(order), rows):
        part = order[start : start + rows]
        ids, mask = texts.batch([items[place] for place in part])
        with autocast():
            vectors[torch.tensor(part, device=DEVICE)] = encode(weights, ids, mask)
    return vectors


# Scores


@dataclass(slots=True)
class Ranks:
    """The rank of each group of each question, by cosine and fused with BM25."""

    cosine: list[list[float]] = field(default_factory=list)
    fused: list[list[float]] = field(default_factory=list)

    def row(self) -> dict[str, list[float]]:
        """Return R@1/5/10 in percent."""
        return {
            name: [
                round(100 * float(np.mean([np.mean(np.array(r) <= k) for r in ranks])), 1)
                for k in (1, 5, 10)
            ]
            for name, ranks in (("cosine", self.cosine), ("fused", self.fused))
        }


def passage_owners(corpus: Corpus) -> torch.Tensor:
    """Return the document of each passage."""
    counts = torch.tensor([len(cut) for cut in corpus.passages])
    return torch.repeat_interleave(torch.arange(len(counts)), counts).to(DEVICE)


def document_scores(
    weights: Weights, texts: Texts, corpus: Corpus, questions: Sequence[Question], dims: int = 384
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores of documents and passages for each question, and the questions' vectors."""
    flat = [passage for cut in corpus.passages for passage in cut]
    vectors = F.normalize(embed(weights, texts, flat)[:, :dims], dim=-1)
    queries = F.normalize(
        embed(weights, texts, [question.text for question in questions])[:, :dims], dim=-1
    )
    by_passage = queries @ vectors.T
    owner = passage_owners(corpus).expand(len(questions), -1)
    scores = torch.full((len(questions), len(corpus.passages)), -1.0, device=DEVICE)
    return scores.scatter_reduce(1, owner, by_passage, "amax"), by_passage, queries


def evaluate(
    weights: Weights, texts: Texts, corpora: Sequence[Corpus], dims: int = 384
) -> dict[str, dict[str, list[float]]]:
    """Return the scores of each set."""
    ranks: dict[str, Ranks] = defaultdict(Ranks)
    for corpus in corpora:
        asked = [question for question in corpus.questions if question.groups]
        asked = [question for question in asked if question.category != "adversarial"]
        if not asked:
            continue
        scores, _, _ = document_scores(weights, texts, corpus, asked, dims)
        keyword = torch.zeros_like(scores)
        for row, question in enumerate(asked):
            for place, score in question.bm25:
                keyword[row, place] = score
        fused = 3 * _standard(scores) + _standard(keyword)
        for name, matrix in (("cosine", scores), ("fused", fused)):
            order = matrix.argsort(dim=1, descending=True)
            place = torch.empty_like(order)
            place.scatter_(1, order, torch.arange(order.shape[1], device=DEVICE).expand_as(order))
            for row, question in enumerate(asked):
                best = [float(place[row, group].min()) + 1 for group in question.groups]
                getattr(ranks[corpus.set], name).append(best)
    return {name: entry.row() for name, entry in ranks.items()}


def _standard(scores: torch.Tensor) -> torch.Tensor:
    return (scores - scores.mean(1, keepdim=True)) / (scores.std(1, keepdim=True) + 1e-6)


def show(title: str, figures: dict[str, dict[str, list[float]]]) -> None:
    """Print the scores of each set."""
    print(title)
    for name, row in figures.items():
        cosine, fused = ("/".join(f"{x:.1f}" for x in row[kind]) for kind in ("cosine", "fused"))
        print(f"  {name:<24} cosine {cosine:<18} fused {fused}", flush=True)


# Training


@dataclass(slots=True)
class Group:
    """A question with right and wrong passages to choose from."""

    question: str
    right: list[str]
    wrong: list[str]
    corpus: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train."""

    epochs: int = 5
    rounds: int = 1
    batch: int = 64
    hard: int = 7
    rate: float = 5e-5
    temperature: float = 0.05
    dropout: float = 0.1
    frozen_words: bool = True
    one_corpus: bool = True
    share: float = 0.9
    dims: tuple[int, ...] = (384,)
    margin: float = 0.95
    steps: int = 0
    seed: int = 7


@torch.no_grad()
def mine(weights: Weights, texts: Texts, corpora: Sequence[Corpus], recipe: Recipe) -> list[Group]:
    """Return groups: the best passages of the right documents against near ones of others.

    A passage nearer than `margin` of the right one's cosine is left out: it may be right, too.
    """
    groups: list[Group] = []
    for number, corpus in enumerate(corpora):
        asked = [question for question in corpus.questions if question.groups]
        asked = [question for question in asked if question.category != "adversarial"]
        if not asked:
            continue
        _, by_passage, _ = document_scores(weights, texts, corpus, asked)
        flat = [passage for cut in corpus.passages for passage in cut]
        owner = passage_owners(corpus)
        starts = np.concatenate([[0], np.cumsum([len(cut) for cut in corpus.passages])])
        top = by_passage.topk(min(200, by_passage.shape[1]), dim=1).indices.tolist()
        owners, cosines = owner.tolist(), by_passage.tolist()
        for row, question in enumerate(asked):
            right = question.right()
            chosen, best = [], 0.0
            for document in sorted(right):
                span = range(starts[document], starts[document + 1])
                place = max(span, key=lambda at: cosines[row][at])
                chosen.append(flat[place])
                best = max(best, cosines[row][place])
            near = [
                place
                for place in top[row]
                if owners[place] not in right and cosines[row][place] < recipe.margin * best
            ][:40]
            by_words = [
                max(range(starts[d], starts[d + 1]), key=lambda at: cosines[row][at])
                for d, _ in question.bm25[:40]
                if d not in right
            ]
            wrong = [flat[place] for place in dict.fromkeys([*near, *by_words])]
            wrong = [text for text in wrong if text not in chosen]
            if len(wrong) >= 4:
                groups.append(Group(question.text, chosen, wrong, number))
    return groups


def batches(groups: list[Group], recipe: Recipe) -> Iterator[list[Group]]:
    """Yield the batches of an epoch; with `one_corpus` each of one project or conversation."""
    random.shuffle(groups)
    if not recipe.one_corpus:
        for start in range(0, len(groups) - recipe.batch + 1, recipe.batch):
            yield groups[start : start + recipe.batch]
        return
    by_corpus: dict[int, list[Group]] = defaultdict(list)
    for group in groups:
        by_corpus[group.corpus].append(group)
    parts = []
    for some in by_corpus.values():
        parts += [some[at : at + 32] for at in range(0, len(some), 32)]
    random.shuffle(parts)
    pending: list[Group] = []
    for part in parts:
        pending += part
        if len(pending) >= recipe.batch:
            yield pending[: recipe.batch]
            pending = pending[recipe.batch :]


def loss_of(weights: Weights, texts: Texts, batch: list[Group], recipe: Recipe) -> torch.Tensor:
    """Return the contrastive loss of a batch; a passage that answers two questions is no error."""
    right = [random.choice(group.right) for group in batch]
    wrong = [text for group in batch for text in random.choices(group.wrong, k=recipe.hard)]
    questions = [group.question for group in batch]
    with autocast():
        queries = encode(weights, *texts.batch(questions, 96), recipe.dropout)
        passages = encode(weights, *texts.batch(right + wrong, 220), recipe.dropout)
    target = torch.arange(len(batch), device=DEVICE)
    columns: dict[str, list[int]] = defaultdict(list)
    for column, text in enumerate(right + wrong):
        columns[text].append(column)
    same = torch.zeros((len(batch), len(right) + len(wrong)), dtype=torch.bool)
    for row, group in enumerate(batch):
        for text in group.right:
            same[row, columns.get(text, [])] = True
        same[row, row] = False
    total = torch.zeros((), device=DEVICE)
    for dims in recipe.dims:
        cosines = F.normalize(queries[:, :dims], dim=-1) @ F.normalize(passages[:, :dims], dim=-1).T
        logits = (cosines / recipe.temperature).masked_fill(same.to(DEVICE), -1e4)
        total = total + F.cross_entropy(logits, target)
    return total / len(recipe.dims)


def train(base: Weights, texts: Texts, corpora: Sequence[Corpus], recipe: Recipe) -> Weights:
    """Return fine-tuned weights; each round mines passages with the model so far."""
    random.seed(recipe.seed)
    torch.manual_seed(recipe.seed)
    weights = {name: tensor.clone() for name, tensor in base.items()}
    for corpus in corpora:
        texts.add(question.text for question in corpus.questions)
        texts.add(passage for cut in corpus.passages for passage in cut)
    per_round = math.ceil(recipe.epochs / recipe.rounds)
    groups = mine(weights, texts, corpora, recipe)
    total = recipe.steps or recipe.epochs * (len(groups) // recipe.batch)
    trained = [
        name
        for name in weights
        if not (recipe.frozen_words and "word_embeddings" in name) and "position_ids" not in name
    ]
    parameters = [weights[name].requires_grad_() for name in trained]
    optimizer = torch.optim.AdamW(
        parameters, lr=recipe.rate, weight_decay=0.01, fused=DEVICE == "cuda"
    )
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 30) * max(0.05, 1 - step / total)
    )
    started, step = time.time(), 0
    for epoch in range(recipe.epochs):
        if epoch and epoch % per_round == 0:
            groups = mine(weights, texts, corpora, recipe)
        for batch in batches(groups, recipe):
            loss = loss_of(weights, texts, batch, recipe)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
            schedule.step()
            step += 1
            if step >= total:
                break
        if step >= total:
            break
    print(f"  {len(groups)} groups, {step} steps, {time.time() - started:.0f} s", flush=True)
    return mixed(base, {name: tensor.detach() for name, tensor in weights.items()}, recipe.share)


def mixed(base: Weights, trained: Weights, share: float) -> Weights:
    """Return weights between the base and the trained ones: general retrieval suffers less."""
    return {name: base[name] + share * (tensor - base[name]) for name, tensor in trained.items()}


# The result


def difference(base: Weights, trained: Weights) -> dict[str, np.ndarray]:
    """Return what was learned: per tensor the difference in int8, and the scale of each row."""
    tensors: dict[str, np.ndarray] = {}
    for name, tensor in trained.items():
        change = (tensor - base[name]).cpu().numpy().astype(np.float32)
        if not np.any(change):
            continue
        rows = change.reshape(len(change), -1)
        scale = np.abs(rows).max(axis=1, keepdims=True) / 127
        scale[scale == 0] = 1
        tensors[name] = np.rint(rows / scale).astype(np.int8).reshape(change.shape)
        tensors[f"{name}.scale"] = scale[:, 0].astype(np.float32)
    return tensors


def apply_difference(base: Weights, tensors: dict[str, np.ndarray]) -> Weights:
    """Return the base model with a difference added, as the product does it."""
    weights = dict(base)
    for name, levels in tensors.items():
        if not name.endswith(".scale"):
            scale = tensors[f"{name}.scale"].reshape(-1, *[1] * (levels.ndim - 1))
            change = torch.tensor(levels.astype(np.float32) * scale, device=DEVICE)
            weights[name] = base[name] + change
    return weights


def write_tensors(path: Path, tensors: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file."""
    kinds = {"float32": "F32", "int8": "I8"}
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, array in tensors.items():
        end = offset + array.nbytes
        header[name] = {
            "dtype": kinds[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    raw = json.dumps(header, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(raw)) + raw)
        for array in tensors.values():
            stream.write(np.ascontiguousarray(array).tobytes())


def is_trainable(corpus: Corpus) -> bool:
    """Return whether a corpus may be trained on and what comes of it be shipped."""
    return not any(name in corpus.set for name in EVALUATED_ONLY)


def _is_coding(corpus: Corpus) -> bool:
    return "coding" in corpus.set or "session-qa" in corpus.set


def fold_of(corpus: Corpus) -> str:
    """Return the fold of a corpus: a project of its own, or a fifth of the conversations."""
    if _is_coding(corpus):
        return corpus.name.partition("/")[0]
    return f"chats {zlib.crc32(corpus.name.encode()) % CHAT_FOLDS}" if "chats" in corpus.set else ""


def hold_out(corpora: Sequence[Corpus], number: int) -> list[Corpus]:
    """Return the corpora of a fold: a project, and a part of the conversations."""
    projects = sorted({fold_of(corpus) for corpus in corpora if _is_coding(corpus)})
    held = {f"chats {number % CHAT_FOLDS}", *projects[number : number + 1]}
    return [corpus for corpus in corpora if fold_of(corpus) in held]


def write_vectors(path: Path, texts: Sequence[tuple[str, str]], vectors: torch.Tensor) -> None:
    """Write vectors by the key of their text, as the evaluation's cache has them, in float16."""
    halves = vectors.cpu().numpy().astype(np.float16)
    with path.open("wb") as stream:
        for (kind, text), row in zip(texts, halves, strict=True):
            raw = kind.encode() + text.encode("utf-8", "replace")
            stream.write(hashlib.blake2b(raw, digest_size=16).digest() + row.tobytes())


def write_corpora(path: Path, weights: Weights, texts: Texts, corpora: Sequence[Corpus]) -> None:
    """Write the vectors of all passages and questions of some corpora, in files of 15 MB."""
    both = [("p", passage) for corpus in corpora for cut in corpus.passages for passage in cut]
    both += [("q", question.text) for corpus in corpora for question in corpus.questions]
    both = list(dict.fromkeys(both))
    vectors = embed(weights, texts, [text for _, text in both])
    for number, start in enumerate(range(0, len(both), VECTORS_A_FILE)):
        part = slice(start, start + VECTORS_A_FILE)
        write_vectors(path.with_suffix(f".{number}.bin"), both[part], vectors[part])


def train_folds(
    base: Weights,
    texts: Texts,
    corpora: Sequence[Corpus],
    recipe: Recipe,
    numbers: list[int],
    out: Path,
) -> dict[str, Any]:
    """Train without each fold in turn; return its scores, and write its vectors.

    Whoever trains on these vectors sees each project as one that the encoder does not know.
    """
    figures: dict[str, Any] = {}
    for number in numbers:
        held = hold_out(corpora, number)
        learned = [one for one in corpora if is_trainable(one) and one not in held]
        weights = train(base, texts, learned, recipe)
        figures[f"fold {number}"] = evaluate(weights, texts, held)
        show(f"fold {number}, not trained on", figures[f"fold {number}"])
        write_corpora(out / f"vectors-{number}.bin", weights, texts, held)
    return figures


def main() -> None:
    """Train and evaluate, and write the difference to the base model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", type=int, nargs="*", help="train these folds, not the model")
    parser.add_argument("--epochs", type=int, default=Recipe().epochs)
    parser.add_argument("--steps", type=int, default=0, help="stop after so many steps")
    parser.add_argument("--batch", type=int, default=Recipe().batch)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    corpora = read_sets(options.sets)
    texts = Texts(options.model / "tokenizer.json")
    (file,) = options.model.glob("*.safetensors")
    base = read_weights(file)
    recipe = Recipe(epochs=options.epochs, steps=options.steps, batch=options.batch)
    figures: dict[str, Any] = {"base": evaluate(base, texts, corpora)}
    show("all-MiniLM-L6-v2", figures["base"])
    if options.folds is not None:
        figures |= train_folds(base, texts, corpora, recipe, options.folds, options.out)
    else:
        learned = [corpus for corpus in corpora if is_trainable(corpus)]
        tensors = difference(base, train(base, texts, learned, recipe))
        trained = apply_difference(base, tensors)
        figures["trained"] = evaluate(trained, texts, corpora)
        show("trained on all but the evaluation sets", figures["trained"])
        sets = " ".join(sorted({corpus.set for corpus in learned}))
        write_tensors(
            options.out / "lore-mini.safetensors",
            tensors,
            {"base": "all-MiniLM-L6-v2", "script": "benchmarks/train_encoder.py", "sets": sets},
        )
        apart = [corpus for corpus in corpora if not is_trainable(corpus)]
        write_corpora(options.out / "vectors-apart.bin", trained, texts, apart)
    (options.out / "figures.json").write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
