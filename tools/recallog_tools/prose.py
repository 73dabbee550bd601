"""Checks the words of docstrings, comments, messages and pages for phrases that a native engineer would not write.

`PYTHONPATH=tools python -m recallog_tools.prose` prints each finding with its place and a suggestion; the exit code is
1 if there are any. `--count` prints the number of findings of each rule. A rule is a pattern: legitimate uses are part
of it, and no file is ignored.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]


class Rule(NamedTuple):
    """A phrase to avoid."""

    name: str
    pattern: re.Pattern[str]
    suggestion: str


class Text(NamedTuple):
    """A text that people read."""

    path: str
    line: int
    """The line on which it begins, from 1."""
    words: str


class Finding(NamedTuple):
    """A phrase that a rule rejects."""

    path: str
    line: int
    rule: Rule
    phrase: str
    """The phrase with the words around it."""


def _rule(name: str, pattern: str, suggestion: str) -> Rule:
    return Rule(name, re.compile(pattern), suggestion)


_TO_BE = r"(?:is|are|was|were)"

_ORDERED = "one|last|first|cursor|key|record|row|verb|id|event|item|newest|closing"
"""What something can come after, in an order."""

RULES = (
    _rule(
        "is-no",
        rf"(?<!here )\b{_TO_BE} no (?!longer\b|more than\b|less\b|better\b|worse\b|match\b|summary\b)(?=[a-z`\"]|$)",
        '"is not a …", "are not …"',
    ),
    _rule("is-none", rf"(?<!here )\b{_TO_BE} none\b(?! of (?:them|the|its)\b)", '"is not one", or name the case'),
    _rule(
        "stands",
        r"(?<!-)\bstands?\b(?! (?:for|in for|still|alone|by|up)\b)(?!-)",
        '"is"; "applies" for what is valid',
    ),
    _rule(
        "behind",
        rf"(?<!be )\bbehind (?:it|them|its (?:cursor|key)|(?:the|an?|one) (?:{_ORDERED})\b|`|\"|which|what|whose)",
        '"after" for an order; "behind" is for lag and for servers',
    ),
    _rule(
        "told",
        rf"\b(?:{_TO_BE}|be|been|being) (?:also |not |now |only |then )*told\b(?! (?:apart|to)\b)",
        '"is reported to", "gets", "learns"',
    ),
    _rule(
        "of-those",
        r"\bof those\b(?=[,;:.)]|$| (?:that|who|which|whose|with|in|of|on|among|below|above|before|left|it|and)\b)",
        "name what they are",
    ),
    _rule("such-as-are", r"\bsuch as (?:are|is|have|has)\b", '"that are"'),
    _rule("as-such", r"\bas such\b", "leave it out"),
    _rule("of-late", r"\bof late\b", '"recently"'),
    _rule("at-present", r"\bat present\b", '"now"'),
    _rule("anew", r"(?<!-)\banew\b(?!-)", '"again", "from the beginning"'),
    _rule("but-for", r"(?<!not )(?<!,)(?<!;)\bbut for (?!example)", '"except"'),
    _rule("is-to-be", r"\b(?:is|are) to be\b", '"must be", or the infinitive alone: "the event to publish"'),
    _rule("can-be-had", r"\b(?:can|to|could) be had\b", '"is available", "can be read"'),
    _rule("begin-so", r"\bbegins? so\b", '"begins with this"'),
    _rule("whoever", r"\b[Ww]hoever\b", "name the subject: the caller, the process, any agent"),
    _rule("ones-own", r"\bone's own\b", '"your own", "custom"'),
    _rule("come-to", r"\b(?:has|have|had) come to (?:a|an|the|its|their|be)\b", '"has reached", "has entered"'),
    _rule("that-many", r"\b(?:if|of|for|after) that many\b", "name the number"),
    _rule("lets-no", r"\blets? no\b", '"rejects", "does not allow"'),
    _rule("merge-mark", r"(?m)^(?:<{7}|>{7}) ", "resolve the merge"),
)
"""What the check rejects. A use that is right is excluded by its pattern."""

_FENCE = re.compile(r"^\s*(?:```|~~~)")
_NOT_PROSE = re.compile(r"[|\\]|\(\?")
"""Of strings: tables and regular expressions."""


def find_all(repository: Path = REPOSITORY) -> list[Finding]:
    """The findings in the versioned files of a repository."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout.split()
    return [finding for path in listed for text in _texts(repository, path) for finding in find_in(text)]


def find_in(text: Text) -> Iterator[Finding]:
    """The findings in one text."""
    for rule in RULES:
        for match in rule.pattern.finditer(text.words):
            line = text.line + text.words.count("\n", 0, match.start())
            around = text.words[max(0, match.start() - 50) : match.end() + 40]
            yield Finding(text.path, line, rule, " ".join(around.split()))


def texts_of_module(path: str, source: str) -> Iterator[Text]:
    """Docstrings, also below attributes, comments, and strings of several words; of tests no strings, which are
    data."""
    tree = ast.parse(source)
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_message = " " in node.value and not path.startswith("tests/") and not _NOT_PROSE.search(node.value)
            if id(node) in docstrings or is_message:
                yield Text(path, node.lineno, node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, token.start[0], token.string)


def texts_of_page(path: str, source: str) -> Iterator[Text]:
    """The paragraphs of a page of Markdown, without its blocks of code."""
    begin, paragraph, fenced = 1, list[str](), False
    for number, line in enumerate([*source.split("\n"), ""], start=1):
        fence = bool(_FENCE.match(line))
        if fence or fenced or not line.strip():
            if paragraph:
                yield Text(path, begin, "\n".join(paragraph))
            paragraph = []
        else:
            begin = begin if paragraph else number
            paragraph.append(line)
        fenced ^= fence


def _texts(repository: Path, path: str) -> Iterator[Text]:
    source = (repository / path).read_text(encoding="utf-8")
    return texts_of_page(path, source) if path.endswith(".md") else texts_of_module(path, source)


def main() -> int:
    findings = find_all()
    if "--count" in sys.argv[1:]:
        for name, count in Counter(finding.rule.name for finding in findings).most_common():
            print(f"{count:>5}  {name}")
    else:
        for path, line, rule, phrase in findings:
            print(f'{path}:{line}: "{rule.name}": …{phrase}…\n    suggested: {rule.suggestion}')
    print(f"{len(findings):,} findings", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
