"""Formats that separate packages read: the structure of their files, so that an error can name the package to
install."""

import tomllib
from dataclasses import dataclass
from importlib.resources import files

from recallog_schemas.extras import how_to_install
from recallog_service.formats.structure import Structure


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A format that a package reads if it is installed."""

    name: str
    package: str
    structure: Structure

    @property
    def advice(self) -> str:
        return f"{self.package} reads the format {self.name}. {how_to_install(self.package)}"


ELSEWHERE = {
    name: Elsewhere(name, table["package"], Structure(table["structure"], table.get("among")))
    for name, table in tomllib.loads((files(__package__) / "elsewhere.toml").read_text(encoding="utf-8")).items()
}


def structure_of(name: str) -> Structure:
    """The structure of a format that one of Recallog's packages reads."""
    return ELSEWHERE[name].structure
