"""Writes everything in the repository that is generated from the code: `make generate`.

`python -m recallog_tools.generate FOLDER` writes it to another folder, for example with the models that are installed.
"""

import sys
from pathlib import Path

from recallog_tools import exports

REPOSITORY = Path(__file__).parents[2]


def write(repository: Path) -> None:
    """Write the JSON Schemas, the API reference, the summaries of commands, the parts of the documents of HTTP that all
    servers have, and the stubs of packages and of derived classes.

    Pages that are no longer generated are removed.
    """
    exports.write(repository)
    # Only now can names be imported that these stubs did not have before.
    from recallog import Memory
    from recallog.operations import schemas
    from recallog_schemas import export
    from recallog_service.cli.app import SUMMARIES
    from recallog_service.http import documents
    from recallog_tools import http_documents, reference, stubs, summarize

    export.write(repository / "schemas" / "json", schemas.documents(Memory))
    folder = repository / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    pages = reference.pages(Memory)
    for path in folder.glob("*.md"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (folder / name).write_text(text, encoding="utf-8")
    found = {SUMMARIES: summarize.generated(), documents.ALIKE: http_documents.generated(), **stubs.generated()}
    for file, text in found.items():
        written = repository / file.relative_to(REPOSITORY)
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else REPOSITORY)
