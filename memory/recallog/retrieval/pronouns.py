"""Pronouns of the first and second person by language, as patterns in verbose form.

A form that is a different word in another of these languages, such as French "mes" or Italian "ma", is left out.
"""

from typing import NamedTuple


class Pronouns(NamedTuple):
    """The pronouns of one language. Upper and lower case are the same, except in a group `(?-i:…)`."""

    first_subjects: str
    """Forms that make the asker the subject of a question."""
    second_subjects: str
    """Forms that make the addressee the subject of a question."""
    first_others: str = ""
    """Objects and possessives that refer to the asker."""
    second_others: str = ""
    courtesies: str = ""
    """Polite phrases around a question, whose pronouns are not its subject."""
    whole_words: bool = True
    """Whether the forms are whole words. In scripts without spaces, forms match anywhere."""


ENGLISH = Pronouns(
    first_subjects=r"""
        (?-i:I)(?!\.) | i(?='(?:m|ve|d|ll)\b)
        | (?:did|do|have|had|was|am|can|could|would|will|should|shall|that|what|where|when|if)\s+i
    """,  # a small "i" alone is a word of many languages
    second_subjects="you",
    first_others="me | my | mine",
    second_others="your | yours",
    courtesies=r"""
        (?:can|could|would|will)\s+(?:you|u)(?:\s+please)?
        | do\s+you\s+(?:still\s+|even\s+)?(?:remember|recall|know|think|have\s+any)
        | (?:tell|remind|show|help|give|let|walk|with)\s+me | thank\s+you
        | i\s+(?:want|need|would\s+like|wanted)\s+to\s+(?:know|ask|remember|find)
        | i(?:\s+am|'m|\s+was)?\s+(?:wonder(?:ing)?|trying\s+to\s+remember|curious)
        | i(?:'ve)?\s+(?:forgot|forget|forgotten|(?:can't|cannot|don't|do\s+not)\s+(?:remember|recall))
    """,
)
SPANISH = Pronouns(
    first_subjects=r"yo | te\s+(?!acuerdas|recuerdas)\w+(?<!ste)(?<!stes)",  # "te dije": the verb has the subject
    second_subjects=r"tú | tu | usted | vos | me\s+\w+[ai]ste",
    first_others=r"me | mí | mi | mis | míos? | mías? | conmigo",
    second_others=r"tus | ti | contigo | tuyos? | tuyas?",
    courtesies=r"""
        (?:puedes|podrías|puede|podría)\s+(?:decirme|recordarme|usted)? | te\s+acuerdas | (?:tú\s+)?recuerdas | dime
        | recuérdame | quiero\s+saber
    """,
)
FRENCH = Pronouns(
    first_subjects="je | j(?=')",
    second_subjects="vous | t(?='(?:as|es|avais|étais|aurais)\\b)",  # and "tu", as in Spanish
    first_others="moi | mon | m(?=')",
    second_others="toi | ton | ta | tes | te | votre | vos",
    courtesies=r"""
        peux-tu | pourrais-tu | pouvez-vous | pourriez-vous | te\s+souviens-tu | tu\s+te\s+souviens | sais-tu
        | (?:dis|rappelle|dites|rappelez)-moi
    """,
)
GERMAN = Pronouns(
    first_subjects="ich",
    second_subjects=r"du | (?<=\s)(?-i:Sie)",
    first_others="mich | mir | mein(?:e[mnrs]?)?",
    second_others=r"dich | dir | dein(?:e[mnrs]?)? | (?-i:Ihnen) | (?<=\s)(?-i:Ihr(?:e[mnrs]?)?)",
    courtesies=r"""
        (?:kannst|könntest|weißt)\s+du(?:\s+mir)? | (?:können|könnten|wissen)\s+Sie(?:\s+mir)?
        | erinnerst\s+du\s+dich | erinnern\s+Sie\s+sich | (?:sag|zeig|hilf|sagen\s+Sie)\s+mir | erinnere\s+mich
    """,
)
PORTUGUESE = Pronouns(
    first_subjects="eu",
    second_subjects="você",
    first_others="meus? | minhas? | mim | comigo",
    second_others="teus? | tuas?",
    courtesies=r"você\s+(?:lembra|sabe|pode)",
)
ITALIAN = Pronouns(
    first_subjects=r"io | ti\s+(?:ho|avevo)",
    second_subjects=r"mi\s+hai?",
    first_others="mio | mia | miei | mie",
    second_others="tuo | tua | tuoi | tue",
    courtesies=r"(?:puoi|potresti)\s+dirmi | ti\s+ricordi | dimmi",
)
DUTCH = Pronouns(first_subjects="ik", second_subjects="jij", first_others="mij | mijn", second_others="jou | jouw")
RUSSIAN = Pronouns(
    first_subjects="я",
    second_subjects="ты | вы",
    first_others="мне | меня | мой | моя | моё | мои | моего | моей | моём | моих",
    second_others="тебе | тебя | твой | твоя | твоё | твои | вам | вас | ваш | ваша | ваше | ваши",
    courtesies=r"""
        (?:можешь|можете|помнишь|помните|знаешь|знаете)(?:\s+ли)?(?:\s+(?:ты|вы))? | (?:скажи|напомни)(?:те)?\s+мне
    """,
)
CHINESE = Pronouns(  # one form for subjects, objects and possessives
    first_subjects="(?<!自)我(?![们們])",
    second_subjects="[你您妳](?![们們好])",
    courtesies=r"""
        ^(?:请问|請問)?(?:请|請|麻烦|麻煩)?(?:[你您](?:能不能|能否|可不可以|可否|可以|能))?
        (?:告诉我|告訴我|提醒我|帮我|幫我|给我|給我)
        | [你您](?:还|還)?(?:记不记得|記不記得|记得|記得|知道|知不知道) | [你您](?:能不能|能否|可不可以|可否|可以|能)
        | 我(?:想|要)?(?:问问|问|問|知道|了解)
        | 我(?:忘了|忘记了?|忘記了?|不记得了?|不記得了?|记不清了?|记不得了?|想不起来了?)
    """,
    whole_words=False,
)
JAPANESE = Pronouns(
    first_subjects="私(?=[はがのもにを、]) | 僕 | 俺 | わたし",
    second_subjects="あなた | 貴方 | くれた | くれました | くださった | くださいました",
    courtesies="覚えて(?:い)?ますか | 教えて(?:くれ(?:る|ますか|ませんか)|ください)?",
    whole_words=False,
)
KOREAN = Pronouns(
    first_subjects="(?<![가-힣])(?:나는|내가|내|나의|나에게|나한테|저는|제가|저의|저한테)(?![가-힣])",
    second_subjects="(?<![가-힣])(?:너는|네가|니가|너의|너한테|당신[가-힣]?)(?![가-힣])",
    whole_words=False,
)
HINDI = Pronouns(
    first_subjects=r"(?<!\S)(?:मैं|मैंने|मेरा|मेरी|मेरे|मुझे)(?!\S)",
    second_subjects=r"(?<!\S)(?:तुम|तुमने|तूने|आप|आपने|तुम्हारा|तुम्हारी|आपका|आपकी|आपके)(?!\S)",
    whole_words=False,
)  # vowel signs are not letters to `\b`

LANGUAGES = (
    ENGLISH, SPANISH, FRENCH, GERMAN, PORTUGUESE, ITALIAN, DUTCH, RUSSIAN, CHINESE, JAPANESE, KOREAN, HINDI,
)  # fmt: skip
