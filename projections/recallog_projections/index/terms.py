"""The terms of a text for the channel `keyword`: stems of its content words, and their BM25 weights.

BM25 (Robertson and Zaragoza, 2009): a term that occurs tf times in a text has the weight
tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length)), times its idf among the texts that the agent may see.
The engine computes the idf for each query. Stored weights must not depend on other texts, so that the average length is
a constant; with a low b it has little influence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from functools import lru_cache
from hashlib import blake2b
from threading import local

import Stemmer

from recallog_projections.index.engines.engine import Sparse

K1 = 0.9
B = 0.4
AVERAGE_TERMS = 25.0
REPEATED_TERM_DISCOUNT = 0.6
"""The share of its weight that a term loses if the preceding text has it too."""

# Function words, including question words and the parts of "don't" and "it'll".
FUNCTION_WORDS = frozenset(
    """
    a an the this that these those such same other another each every either neither both all any some no none
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves one ones someone somebody something anyone anybody anything
    everyone everybody everything nobody nothing who whom whose which what when where why how whoever whatever whichever
    whenever wherever there here
    am is are was were be been being do does did doing done have has had having can could shall should will would
    might must ought
    and or but nor so yet if then else than as because since although though while until unless whether
    of at by for with about against between into through during before after above below to from up down in out on off
    over under again further once upon within without toward towards across along among around behind beside besides
    beyond near onto per via
    not only own too very just also even ever never still already almost quite rather really yes no oh well ok okay
    s t d m ll re ve don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn can cannot ain let
    """.split()  # noqa: SIM905 - a page of quoted words is harder to read
)

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f]{2,}")
"""Runs of scripts without spaces between words. Each pair of adjacent characters is a term."""

_threads = local()


def terms(text: str) -> list[str]:
    """The content terms of `text` in order, with repetitions."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii():
            if word not in FUNCTION_WORDS:
                found.append(stem(word))
        else:
            found += _of_other_script(word)
    return found


def is_pair(term: str) -> bool:
    """Whether a term is a pair of characters of a script without spaces between words."""
    return _UNSPACED.fullmatch(term) is not None


def _of_other_script(word: str) -> Iterable[str]:
    end = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > end:
            yield stem(word[end : run.start()])
        for start in range(run.start(), run.end() - 1):
            yield word[start : start + 2]
        end = run.end()
    if end < len(word):
        yield stem(word[end:])


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The Snowball stem of a lower-case word."""
    stemmer = getattr(_threads, "stemmer", None)
    if stemmer is None:
        stemmer = _threads.stemmer = Stemmer.Stemmer("english", 0)  # a stemmer is not thread-safe
    return str(stemmer.stemWord(word))


@lru_cache(maxsize=65_536)
def dimension(term: str) -> int:
    """The dimension of a term in sparse vectors: 32 bits of its digest. Of 100,000 terms, about one pair shares one."""
    return int.from_bytes(blake2b(term.encode(), digest_size=4).digest(), "big")


def weights(found: Iterable[str]) -> dict[str, float]:
    """The BM25 weight of each distinct term of a text, without idf."""
    counts = Counter(found)
    floor = K1 * (1 - B + B * counts.total() / AVERAGE_TERMS)
    return {term: count * (K1 + 1) / (count + floor) for term, count in counts.items()}


def repeated_term_discount(weighted: Mapping[str, float], preceding: Set[str]) -> dict[str, float]:
    """The weights, reduced by `REPEATED_TERM_DISCOUNT` for terms that the preceding text has too."""
    return {
        term: weight * (1 - REPEATED_TERM_DISCOUNT) if term in preceding else weight
        for term, weight in weighted.items()
    }


def sparse(weighted: dict[str, float]) -> Sparse:
    """Weighted terms as a sparse vector."""
    dimensions: dict[int, float] = {}
    for term, weight in weighted.items():
        dimensions[dimension(term)] = dimensions.get(dimension(term), 0.0) + weight
    return Sparse(list(dimensions), list(dimensions.values()))
