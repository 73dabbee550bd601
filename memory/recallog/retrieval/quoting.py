"""The passage of a memory that a hit quotes: the one that matches the query best."""

from collections.abc import Mapping

from recallog_projections.index import documents, passages, terms


def find_quote(text: str, embedded: int | None, idf: Mapping[str, float]) -> tuple[int, int] | None:
    """The (start, end) of the passage of `text` that matches best; None if the text is one passage.

    `embedded` is the number of that passage among the embedded ones. If it is None, the first passage with the highest
    sum of `idf` is quoted. `idf` has the idf of each term of the query.
    """
    cleaned = documents.clean(text)
    spans = passages.spans(cleaned)
    if len(spans) == 1:
        return None
    start, end = (
        passages.select_embedded(cleaned)[embedded]
        if embedded is not None
        else max(spans, key=lambda span: sum(idf.get(term, 0.0) for term in {*terms.terms(cleaned[slice(*span)])}))
    )
    shift = len(text) - len(text.lstrip())
    return start + shift, end + shift
