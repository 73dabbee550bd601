"""What an import or an export does with one document, by the digests of three texts: that of the file, that of the
document, and the one that both had when the folder was last imported or exported. Pure.

A digest is None where there is no such text. What one side has changed is never replaced by what the other side has
not; of two changes a caller decides.
"""

from typing import Literal

Decision = Literal["write", "same", "behind", "conflict"]
"""Write the text to the other side; both have it; only the other side has changed; both have changed."""


def on_import(file: str, document: str | None, before: str | None) -> Decision:
    """What becomes of a document that a folder has a file of. One without a common text is written: the ledger still
    has the former one."""
    if file == document:
        return "same"
    if before is None or document == before:
        return "write"
    return "behind" if file == before else "conflict"


def on_export(file: str | None, document: str, before: str | None) -> Decision:
    """What becomes of the file of a document. A file without a common text is somebody else's, and a conflict."""
    if file == document:
        return "same"
    if file is None or file == before:
        return "write"
    return "behind" if document == before else "conflict"
