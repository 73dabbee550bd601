"""Whether a model can read a text: all-MiniLM-L6-v2's tokenizer, and small tokenizers of other kinds."""

from functools import cache
from itertools import cycle

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from recallog_projections.index.embedders import onnx
from recallog_projections.index.embedders.embedder import Passage
from recallog_projections.index.embedders.onnx import unknown_id
from recallog_projections.index.embedders.readability import own_text_readable, readable

CHINESE = "我昨天在面包店买了两个面包。磨坊主说今年的面粉比去年贵一倍。"
JAPANESE = "昨日パン屋でパンを二つ買いました。粉屋は今年の小麦粉が去年の二倍高いと言っていました。"
KOREAN = "어제 빵집에서 빵 두 개를 샀어요. 방앗간 주인은 올해 밀가루 값이 작년보다 두 배라고 했습니다."
THAI = "เมื่อวานฉันซื้อขนมปังสองก้อนที่ร้านเบเกอรี่ คนโม่แป้งบอกว่าปีนี้แป้งแพงกว่าปีที่แล้วสองเท่า"
HINDI = "कल मैंने बेकरी से दो रोटियाँ खरीदीं। चक्की वाले ने कहा कि इस साल आटा पिछले साल से दोगुना महँगा है।"
ARABIC = "اشتريت أمس رغيفين من المخبز وقال الطحان إن الدقيق هذا العام أغلى بمرتين من العام الماضي."
RUSSIAN = "Вчера я купил в пекарне две буханки хлеба. Мельник сказал, что мука в этом году вдвое дороже."
GREEK = "Χθες αγόρασα δύο καρβέλια από τον φούρνο και είπε στον μυλωνά ότι το αλεύρι είναι διπλάσιο φέτος."
HEBREW = "אתמול קניתי שתי כיכרות לחם במאפייה. הטוחן אמר שהקמח השנה יקר פי שניים."
OTHER_SCRIPTS = (CHINESE, JAPANESE, KOREAN, THAI, HINDI, ARABIC, RUSSIAN, GREEK)
MIXED = "我昨天买了 MacBook Pro 和 iPhone 15。用 Docker 部署了新的服务"
ENGLISH = (
    "The miller hid the key under the stone.",
    "teh kyt sitted on teh matt yestrday, lol wtf brb",
    "np.xs kk hmm brrr zzz",
    "Yesterday Jürgen and Zoë ate crème brûlée in São Paulo.",
    "I love sushi (寿司) and met 王小明 in Пермь.",
    "So happy 😂😂😂 🎉",
    "see https://example.com/a/b?x=1&y=zz#frag or mail me@example.org",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '{"reservation_id": "4NQLHD", "seats": [12, 13], "total": 1289.50}',
    "for i, x in enumerate(xs): y[i] += np.dot(w, x) ** 2  # O(n)",
    "$ ffmpeg -i in.mp4 -c:v libx264 -crf 23 out.mkv\nexit status 1",
    "x = y[i] + f(a, b) * c",
    "1,234.50 + 99 = 1333.5",
    "...",
    "",
)


@cache
def minilm() -> Tokenizer:
    return Tokenizer.from_file(str(onnx._minilm().tokenizer))


def chinese_bert() -> Tokenizer:
    """One piece for each ideograph, as in bert-base-chinese."""
    letters = [character for character in CHINESE + MIXED if "\u4e00" <= character <= "\u9fff"]
    words = ["[UNK]", *letters, *"abcdefghijklmnopqrstuvwxyz", "##e", "##r", "docker", "mac", "##book", "pro", "iphone"]
    made = Tokenizer(models.WordPiece({word: n for n, word in enumerate(dict.fromkeys(words))}, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return made


def multilingual() -> Tokenizer:
    """Pieces of at most three characters, some of one, that do not end at words, as in XLM-RoBERTa."""
    vocabulary = {"<unk>": 0.0, "\u2581": -2.0}
    for text in OTHER_SCRIPTS:
        spaced = "\u2581" + text.replace(" ", "\u2581")
        vocabulary |= dict.fromkeys(spaced, -9.0)
        for start, length in zip(range(0, len(spaced), 2), cycle((2, 3, 2, 1)), strict=False):
            vocabulary.setdefault(spaced[start : start + length], -5.0)
    made = Tokenizer(models.Unigram(list(vocabulary.items()), unk_id=0))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


def bytes_only() -> Tokenizer:
    """A piece for each byte, as byte-level tokenizers give for text that they were not trained on."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def byte_fallback() -> Tokenizer:
    pieces = [f"<0x{byte:02X}>" for byte in range(256)] + ["<unk>", "面", "包"]
    return Tokenizer(
        models.BPE({piece: n for n, piece in enumerate(pieces)}, [], byte_fallback=True, unk_token="<unk>")
    )


def pieces(tokenizer: Tokenizer, text: str) -> list[tuple[int, int, bool]]:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    unknown = unknown_id(tokenizer)
    return [(*span, token == unknown) for token, span in zip(encoding.ids, encoding.offsets, strict=True)]


def reads(tokenizer: Tokenizer, text: str) -> bool:
    return readable(text, pieces(tokenizer, text))


@pytest.mark.parametrize("text", ENGLISH)
def test_minilm_reads_english_with_typing_errors_names_code_and_numbers(text: str) -> None:
    assert reads(minilm(), text)


@pytest.mark.parametrize("text", [*OTHER_SCRIPTS, HEBREW, MIXED, "你好", "谢谢你", "好的 ok", "Где хлеб?", "😂😂"])
def test_minilm_does_not_read_other_scripts(text: str) -> None:
    assert not reads(minilm(), text)


def test_english_and_another_script_are_judged_by_the_larger_part() -> None:
    english = "She told me that the bakery closes early on Friday and opens late. "
    assert reads(minilm(), english * 2 + "谢谢你们的面包")
    assert not reads(minilm(), "Friday: " + CHINESE)


@pytest.mark.parametrize("text", [CHINESE, MIXED, "面包", "我"])
def test_a_model_with_a_piece_for_each_ideograph_reads_chinese(text: str) -> None:
    assert reads(chinese_bert(), text)


@pytest.mark.parametrize("text", [JAPANESE, KOREAN, THAI, RUSSIAN, "The miller hid the key under the stone."])
def test_it_does_not_read_what_it_spells_or_lacks(text: str) -> None:
    assert not reads(chinese_bert(), text)


def test_a_model_with_short_pieces_of_many_scripts_reads_them() -> None:
    for text in OTHER_SCRIPTS:
        assert reads(multilingual(), text), multilingual().encode(text).tokens
    assert not reads(multilingual(), HEBREW)


@pytest.mark.parametrize("text", OTHER_SCRIPTS)
def test_letters_in_several_pieces_are_not_read(text: str) -> None:
    assert not reads(bytes_only(), text)
    assert not reads(byte_fallback(), text)


def test_a_known_character_is_read_where_others_fall_back_to_bytes() -> None:
    assert reads(byte_fallback(), "面包")


def test_a_passage_is_judged_by_its_own_text() -> None:
    for before, own in (("The miller: who has the key?\n", CHINESE), (CHINESE + "\n", "Who has the key?")):
        found = own_text_readable(Passage(before + own, len(before)), pieces(minilm(), before + own))
        assert found == (own != CHINESE)


def test_what_was_cut_off_does_not_count() -> None:
    english = "The miller hid the key under the stone. "
    assert readable(english + CHINESE * 9, pieces(minilm(), english))
