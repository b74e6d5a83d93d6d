from lore.embed.catalogue import MODELS, find_model, model_names


def test_no_provider_has_a_name_twice() -> None:
    names = [(model.provider, model.name) for model in MODELS]
    assert len(names) == len(set(names))


def test_a_model_is_found_by_either_name() -> None:
    short = find_model("fastembed", "nomic-embed-text-v1.5")
    assert short is not None
    assert short is find_model("fastembed", "nomic-ai/nomic-embed-text-v1.5")
    assert short.prefix(query=True) == "search_query: "
    assert short.prefix(query=False) == "search_document: "


def test_a_model_belongs_to_its_provider_only() -> None:
    assert find_model("local", "text-embedding-3-small") is None
    assert "text-embedding-3-small" in model_names("openai")
