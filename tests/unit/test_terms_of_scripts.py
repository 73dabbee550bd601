"""Terms of every script: what a reader of the language expects to find, and offsets into the text as it was given."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recallog.retrieval.query import query_terms
from recallog_projections.index import terms
from recallog_projections.index.identifiers import is_exact
from recallog_projections.index.language import stop_words
from recallog_projections.index.language.words import ascii_words, fold, without_accents, words
from recallog_schemas import limits

# Each script: a question, and a text that has the answer. They must have terms in common; the third must not.

MEETING = [
    ("chinese", "你喜欢猫吗？", "我养了一只猫。", "今天下雨了。"),
    ("chinese, traditional", "你喜歡貓嗎？", "我養了一隻貓。", "今天下雨了。"),
    ("chinese and latin", "你的iPhone15是什么时候买的？", "4月27号买了iPhone15。", "他去医院了。"),
    ("japanese", "昨日は何を食べましたか？", "魚を食べた。", "雨が降っていた。"),
    ("japanese, half-width", "ﾊﾟﾝ屋はどこ？", "駅前のパン屋です。", "猫がいる。"),
    ("korean", "뭐 먹었어?", "빵을 먹고 있었어요.", "비가 온다."),
    ("korean, particles", "방앗간은 어디에 있어?", "방앗간이 불탔다.", "고양이를 봤다."),
    ("thai", "แมวกินอะไร", "แมวชอบกินปลา", "ฝนตกหนัก"),
    ("lao", "ແມວຢູ່ໃສ", "ແມວນອນ", "ຝົນຕົກ"),
    ("khmer", "ឆ្មានៅឯណា", "ឆ្មាដេក", "ភ្លៀង"),
    ("burmese", "ကြောင်ဘယ်မှာလဲ", "ကြောင်အိပ်", "မိုးရွာ"),
    ("hindi", "किताब कहाँ है?", "मैंने किताबें खरीदीं।", "बारिश हो रही है।"),
    ("bengali", "বই কোথায়?", "বই পড়ি।", "বৃষ্টি হচ্ছে।"),
    ("tamil", "புத்தகம் எங்கே?", "புத்தகங்களை வாங்கினேன்.", "மழை பெய்கிறது."),
    ("arabic", "أين الكتاب؟", "اشتريت كتابًا جديدًا.", "الجو بارد اليوم."),
    ("arabic, vowel points", "كِتَابٌ", "الكتاب هنا", "الجو بارد"),
    ("persian", "کتاب من کجاست؟", "کتاب‌های تازه خریدم.", "هوا سرد بود."),
    ("hebrew", "איפה הסֵפֶר?", "הספר על השולחן.", "ירד גשם."),
    ("russian", "Когда я купил книгу?", "Книги куплены в мае.", "Идёт дождь."),
    ("ukrainian", "Де моя книга?", "Я забув книгу вдома.", "Падає дощ."),
    ("greek", "Πού είναι ο μύλος;", "Είδα τους μύλους.", "Βρέχει."),
    ("armenian", "Որտե՞ղ է գիրքը։", "Գիրքը սեղանին է։", "Անձրև է գալիս։"),
    ("german", "Wann wurde die Mühle gebaut?", "Die alten Mühlen stehen am Fluss.", "Es regnet heute sehr."),
    ("german, short", "Brötchen", "Anna hat gestern zwei Brötchen gekauft.", "Es regnet heute sehr."),
    ("french", "Où est la boulangerie ?", "Les boulangeries sont fermées.", "Il pleut des cordes."),
    ("spanish", "¿Cuándo compré el pan?", "Ayer compramos pan en la plaza.", "Llueve mucho."),
    ("spanish, no accents", "donde esta la habitacion", "Las habitaciones están arriba.", "Llueve mucho."),
    ("portuguese", "Quem comprou os pães?", "Eu comprei pães na padaria.", "Chove muito."),
    ("italian", "Dove sono i libri?", "Il libro è sul tavolo.", "Piove molto."),
    ("dutch", "Waar zijn de boeken?", "Het boek ligt op tafel.", "Het regent."),
    ("polish", "Gdzie jest książka?", "Książki są na stole.", "Pada deszcz."),
    ("turkish", "Kitap nerede?", "Yeni bir kitap aldım.", "Yağmur yağıyor."),
    ("indonesian", "Di mana buku saya?", "Bukunya ada di meja.", "Hujan turun."),
    ("vietnamese", "Bánh mì ở đâu?", "Tôi mua bánh mì.", "Trời mưa."),
    ("full-width", "ｉＰｈｏｎｅ　１５", "my iPhone 15", "the mill"),
    ("digits", "१५ मार्च", "15 मार्च को", "१६ मई"),
]


@pytest.mark.parametrize(("question", "answer", "other"), [case[1:] for case in MEETING], ids=[c[0] for c in MEETING])
def test_a_question_meets_its_answer_and_nothing_else(question: str, answer: str, other: str) -> None:
    asked = set(terms.terms(question))
    assert asked & set(terms.terms(answer))
    assert not asked & set(terms.terms(other))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("面包店", ["面包", "包店", "面", "包", "店"]),
        ("猫", ["猫"]),
        ("4月27号", ["4", "月", "27", "号"]),
        ("用iPhone15拍", ["用", "iphone15", "拍"]),
        ("买面包 and bread", ["买面", "面包", "买", "面", "包", "bread"]),
        ("iPhone手机v2", ["iphon", "手机", "手", "机", "v2"]),
        ("我们为什么没有见面？", ["见面", "见", "面"]),
        ("私の猫", ["猫"]),
        ("パンを買いました", ["パン", "買い", "買"]),
        ("빵을", ["빵"]),
        ("हिन्दी में", ["हिन्द"]),
        ("Straße, MÜHLE", ["strass", "muhl", "muhle"]),
        ("Ｃａｆé №５", ["cafe", "5"]),
        ("٢٠٢٦", ["2026"]),
        ("soft\u00adware", ["softwar"]),
    ],
)
def test_the_terms_of_a_text(text: str, found: list[str]) -> None:
    assert [term for term in terms.terms(text) if not is_exact(term)] == found


def test_a_single_character_weighs_half_of_a_pair() -> None:
    found = terms.weights(["面包", "面", "a"])
    assert found["面"] == pytest.approx(found["面包"] / 2)
    assert found["a"] == found["面包"]


def test_pairs_are_parts_of_words_and_words_are_not() -> None:
    assert terms.is_ngram("面包")
    assert terms.is_ngram("แมว")
    assert not terms.is_ngram("bread")
    assert not terms.is_ngram("книг")


def test_the_end_of_a_long_question_counts() -> None:
    question = "我上次跟你说过我和女朋友四月一起坐火车去日本旅行的时候，住的那家酒店叫什么名字？"
    found = query_terms(question, ()).terms
    assert {"上次", "日本", "酒店", "名字"} <= set(found)
    assert len(query_terms(question * 9, ()).terms) <= 4 * limits.RECALL_TERMS_MAX  # in both forms
    assert len(query_terms(" ".join(f"word{number}" for number in range(99)), ()).terms) == limits.RECALL_TERMS_MAX


# The language of a text in Latin letters.


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The mill burned.", "en"),
        ("mill bread", "en"),
        ("", "en"),
        ("Los Angeles is where I was born", "en"),
        ("The die was cast in the war, and so am I", "en"),
        ("café at the mall", "en"),
        ("De Niro movie", "en"),
        ("go for pro size", "en"),
        ("Was ist das?", "de"),
        ("Wo ist die Mühle?", "de"),
        ("Où est-il ?", "fr"),
        ("No me lo digas.", "es"),
        ("Mi hermana vive en Madrid", "es"),
        ("C'est bon", "fr"),
        ("Onde você mora?", "pt"),
        ("Che cosa hai fatto?", "it"),
        ("Waar heb je dat gekocht?", "nl"),
        ("Var har du varit?", "sv"),
        ("Hvornår kommer jeg hjem?", "da"),
        ("Hva har du gjort?", "no"),
        ("Missä sinä olet?", "fi"),
        ("Gdzie jesteś?", "pl"),
        ("Kde jsi byl?", "cs"),
        ("Unde este cartea?", "ro"),
        ("Hol van a könyv?", "hu"),
        ("Kitap nerede?", "tr"),
        ("Di mana kamu?", "id"),
        ("Bạn ở đâu?", "vi"),
    ],
)
def test_the_language_is_that_of_most_function_words(text: str, language: str) -> None:
    assert stop_words.language_of([word.folded for word in words(text)], text) == language


@pytest.mark.parametrize("language", stop_words.LATIN_LANGUAGES)
def test_all_function_words_of_a_language_are_recognised_as_its_own(language: str) -> None:
    text = " ".join(sorted(stop_words.stop_words(language)))
    assert stop_words.language_of(text.split(), text) == language
    assert terms.terms(text) == []


@pytest.mark.parametrize("language", ["ru", "el", "hy", "ar", "fa", "he", "hi", "bn", "ta", "ko", "ja", "th", "zh"])
def test_function_words_are_no_terms(language: str) -> None:
    text = (stop_words._FOLDER / f"{language}.txt").read_text("utf-8")
    assert [term for term in terms.terms(text) if len(term) > 1] == []


def test_a_word_of_another_language_has_its_english_stem_too() -> None:
    assert terms.terms("¿Cuándo compré?") == ["compr", "compre"]
    assert terms.terms("Compré.") == ["compre"]


# Properties.

SCRIPTS = st.characters(codec="utf-8") | st.sampled_from(
    "aé ’'1１猫の食ﾊﾟ한글ไม่แมကြောင်हिन्दीًכִّßŉİıǅﬁ½㎏㍿\u200d\u00ad\u0301\ufe0f\u3099"
)
TEXTS = st.text(SCRIPTS)


@given(TEXTS)
def test_spans_are_inside_of_the_text_and_in_order(text: str) -> None:
    assert all(0 <= start < end <= len(text) for start, end, _ in terms.occurrences(text))
    starts = [start for start, _, _ in terms.content_words(text)]
    assert starts == sorted(starts)


@given(TEXTS)
def test_a_span_folds_to_its_word_or_contains_it(text: str) -> None:
    for word in words(text):
        assert word.folded in fold(text[word.start : word.end])


@given(TEXTS)
def test_every_term_is_inside_of_a_content_word(text: str) -> None:
    spans = [(start, end) for start, end, _ in terms.content_words(text)]
    for start, end, term in terms.occurrences(text):
        assert term
        assert is_exact(term) or any(first <= start and end <= last for first, last in spans)


@given(TEXTS)
def test_the_same_text_has_the_same_terms_in_every_normal_form(text: str) -> None:
    assert terms.terms(text) == [term for _, _, term in terms.occurrences(text)]
    assert terms.terms(text) == terms.terms(unicodedata.normalize("NFC", text))


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert without_accents(without_accents(fold(text))) == without_accents(fold(text))


@given(st.text(st.characters(max_codepoint=0x2FF) | st.sampled_from("’“…😊\u0301\u200d")))
def test_texts_in_ascii_letters_are_read_the_same_on_the_short_way(text: str) -> None:
    found = ascii_words(text)
    assert found is None or found == [word.folded for word in words(text)]


def test_a_long_text_is_read_in_linear_time() -> None:
    assert len(terms.terms("猫" * 20_000)) == 39_999
    assert terms.terms(" " * 100_000 + "(" * 100_000) == []
