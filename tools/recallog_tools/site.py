"""Makes the documentation site whole: a hook of MkDocs, named in `mkdocs.yml`.

* `README.md` is the first page, and files outside `docs` that pages link to are part of the site, under `repository`.
* An entry `folder/*.md` of the navigation stands for the pages of that folder that it does not name.
* `llms.txt` lists all pages for programs, in Markdown, also the decisions and the pages under `repository`;
  `llms-full.txt` contains their texts.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).parents[2]
DOCS = "docs"
HOME = "README.md"

_CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)(?:#[^)]*)?\)")


def place_in_site(path: str) -> str:
    """The path of a file in the site, from its path in the repository."""
    if path == HOME:
        return "index.md"
    if path.startswith(f"{DOCS}/"):
        return path.removeprefix(f"{DOCS}/")
    return f"repository/{path}" if path.endswith((".md", ".json")) else f"repository/{path}.txt"


def place_in_repository(place: str) -> str:
    """The path of a page in the repository, from its path in the site."""
    if place == "index.md":
        return HOME
    return place.removeprefix("repository/") if place.startswith("repository/") else f"{DOCS}/{place}"


def find_links(path: str, text: str) -> set[str]:
    """The files of the repository that a page links to, as paths in the repository."""
    return {target for _, target in _links(path, text)}


def rewrite_links(path: str, text: str) -> str:
    """A page of the repository with the links that it has in the site."""
    folder = posixpath.dirname(place_in_site(path)) or "."
    written, end = "", 0
    for link, target in _links(path, text):
        written += text[end : link.start(1)] + posixpath.relpath(place_in_site(target), folder)
        end = link.end(1)
    return written + text[end:]


def _links(path: str, text: str) -> Iterator[tuple[re.Match[str], str]]:
    """The links to files outside blocks of code, each with its target as a path in the repository."""
    folder = posixpath.dirname(path)
    blocks = [block.span() for block in _CODE.finditer(text)]
    for link in _LINK.finditer(text):
        if not any(begin < link.start() < end for begin, end in blocks):
            yield link, _find_file(posixpath.normpath(posixpath.join(folder, link[1])))


def _find_file(path: str) -> str:
    """The file to show for a path: of a folder its README."""
    return posixpath.join(path, "README.md") if (REPOSITORY / path).is_dir() else path


def read(path: str) -> str:
    """The text of a file of the repository; a folder without a README has one that lists its files."""
    file = REPOSITORY / path
    if file.name == "README.md" and not file.exists():
        names = sorted(each.name for each in file.parent.iterdir())
        return "\n".join([f"# {posixpath.dirname(path)}\n", *(f"- [{name}]({name})" for name in names)])
    return file.read_text(encoding="utf-8")


def find_files_outside() -> Iterator[str]:
    """The files outside `docs` that pages link to, directly or through other such pages, as paths in the repository."""
    known = {HOME}
    waiting = [HOME, *(page.relative_to(REPOSITORY).as_posix() for page in (REPOSITORY / DOCS).glob("**/*.md"))]
    while waiting:
        path = waiting.pop()
        if not path.startswith(f"{DOCS}/"):
            yield path
        if path.endswith(".md"):
            found = {each for each in find_links(path, read(path)) if not each.startswith(f"{DOCS}/")} - known
            known |= found
            waiting += sorted(found)


def find_pages_beside_navigation() -> Iterator[tuple[str, str]]:
    """The pages that the navigation does not name: each with a section, and its path in the repository."""
    for page in sorted((REPOSITORY / DOCS).glob("adr/0*.md")):
        yield "Decisions", page.relative_to(REPOSITORY).as_posix()
    for path in sorted(find_files_outside()):
        if path.endswith(".md") and path != HOME:
            yield "Repository", path


def find_title(path: str) -> str:
    """The first heading of a page of the repository."""
    return next(line.removeprefix("# ") for line in read(path).splitlines() if line.startswith("# "))


def expand_navigation(entries: list[Any], folder: Path) -> list[Any]:
    """The navigation with the pages of each entry `folder/*.md`, without those that it names."""
    named = set(_find_pages(entries))

    def expand(entry: Any) -> list[Any]:
        if isinstance(entry, dict):
            return [
                {title: _flatten(map(expand, below)) if isinstance(below, list) else below}
                for title, below in entry.items()
            ]
        if isinstance(entry, str) and "*" in entry:
            pages = [page.relative_to(folder).as_posix() for page in sorted(folder.glob(entry))]
            return [page for page in pages if page not in named]
        return [entry]

    return _flatten(map(expand, entries))


def _flatten(lists: Any) -> list[Any]:
    return [each for entries in lists for each in entries]


def _find_pages(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    else:
        for each in entries.values() if isinstance(entries, dict) else entries:
            yield from _find_pages(each)


def write_llms(site: Path, description: str, pages: list[tuple[str, str, str]]) -> None:
    """Write `llms.txt`, `llms-full.txt` and the Markdown of each page: its section, its title and its path in the site.

    The form of `llms.txt` is that of https://llmstxt.org.
    """
    listed, texts, section = [f"# Recallog\n\n> {description}\n"], [], ""
    for above, title, place in pages:
        if above != section:
            section = above
            listed.append(f"\n## {section}\n")
        listed.append(f"- [{title}]({place})")
        path = place_in_repository(place)
        text = rewrite_links(path, read(path))
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        texts.append(f"<!-- {place} -->\n\n{text}")
    (site / "llms.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text("\n".join(texts), encoding="utf-8")


# What MkDocs calls, by these names.


def on_config(config: "MkDocsConfig") -> None:
    assert config.nav is not None  # noqa: S101
    config.nav = expand_navigation(config.nav, REPOSITORY / DOCS)


def on_files(files: "Files", config: "MkDocsConfig") -> None:
    from mkdocs.structure.files import File

    for path in find_files_outside():
        files.append(File.generated(config, place_in_site(path), content=read(path)))


def on_page_markdown(markdown: str, page: "Page", config: "MkDocsConfig", files: "Files") -> str:
    return rewrite_links(place_in_repository(page.file.src_uri), markdown)


_pages: "list[Page]" = []


def on_nav(nav: "Navigation", config: "MkDocsConfig", files: "Files") -> None:
    _pages[:] = nav.pages


def on_post_build(config: "MkDocsConfig") -> None:
    pages = [(page.ancestors[-1].title, str(page.title), page.file.src_uri) for page in _pages]
    pages += [(section, find_title(path), place_in_site(path)) for section, path in find_pages_beside_navigation()]
    write_llms(Path(config.site_dir), str(config.site_description), pages)
