"""The decision of an import or an export about one document, by the digests of three texts: of the file, of the
document, and of the text that both had at the last import or export of the folder. Pure.

A digest is None if there is no such text. A change on one side is never overwritten by an unchanged text of the other
side. If both sides have changed, the caller decides.
"""

from typing import Literal

Decision = Literal["write", "same", "behind", "conflict"]
"""Write the text to the other side; both have it; only the other side has changed; both have changed."""


def on_import(file: str, document: str | None, before: str | None) -> Decision:
    """The decision about a document for a file of the folder. If no common text is known, the file is written: the
    ledger retains the former text of the document."""
    if file == document:
        return "same"
    if before is None or document == before:
        return "write"
    return "behind" if file == before else "conflict"


def on_export(file: str | None, document: str, before: str | None) -> Decision:
    """The decision about the file of a document. A file without a common text was written by somebody else, and is a
    conflict."""
    if file == document:
        return "same"
    if file is None or file == before:
        return "write"
    return "behind" if document == before else "conflict"
