"""The map of the house in CONTRIBUTING.md is the house."""

import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
LAYERS = {
    "recallog_service": "service",
    "recallog": "memory",
    "recallog_streams": "streams",
    "recallog_projections": "projections",
    "recallog_schemas": "schemas",
}
WITH_MODELS = [layer for layer, folder in LAYERS.items() if (ROOT / folder / layer / "models").is_dir()]


def _block(language: str, beginning: str) -> str:
    found = re.search(rf"```{language}\n({beginning}.*?)```", TEXT, re.DOTALL)
    assert found is not None
    return found[1]


def _packages(folder: Path) -> set[str]:
    return {each.parent.name for each in folder.glob("*/__init__.py")}


def _folders_on_map() -> dict[str, set[str]]:
    """The folders that the map shows, by the layer above them."""
    shown: dict[str, set[str]] = {}
    layer = ""
    for line in _block("", "service/").splitlines():
        if not line.startswith(" "):
            layer = line.split("/")[1] if line.split("/")[0] in LAYERS.values() else ""
        shown.setdefault(layer, set()).update(
            re.findall(r"(?<![\w/.])([a-z_]+)/", line[:35]) if line[:1] == " " else ()
        )
    return shown


@pytest.mark.parametrize("layer", LAYERS)
def test_the_map_shows_the_folders_of_each_layer(layer: str) -> None:
    assert _folders_on_map()[layer] == _packages(ROOT / LAYERS[layer] / layer)


def _arrows() -> set[tuple[str, str]]:
    return {
        (above, below) for above, below in re.findall(r"^  (\w+) --> (\w+)$", _block("mermaid", "graph"), re.MULTILINE)
    }


def _models_on_map() -> set[str]:
    return set(re.findall(r"^  (\w+)(?: --> \w+)?$", _block("mermaid", "graph"), re.MULTILINE))


@pytest.mark.parametrize("layer", WITH_MODELS)
def test_the_map_shows_the_models(layer: str) -> None:
    assert _packages(ROOT / LAYERS[layer] / layer / "models") <= _models_on_map()


@pytest.mark.models("all")
def test_each_model_has_its_name_in_the_upper_layer() -> None:
    assert _packages(ROOT / "memory/recallog/models") == _models_on_map()


@pytest.mark.models("all")
def test_the_arrows_of_the_map_are_the_imports_between_models() -> None:
    graph = grimp.build_graph("recallog", *(layer for layer in WITH_MODELS if layer != "recallog"))
    found: set[tuple[str, str]] = set()
    for importer in graph.modules:
        of = _model_of(importer)
        found |= {(of, to) for each in graph.find_modules_directly_imported_by(importer) if (to := _model_of(each))}
    assert {(of, to) for of, to in found if of and of != to} == _arrows()


def _model_of(module: str) -> str:
    parts = module.split(".")
    return parts[2] if len(parts) > 2 and parts[1] == "models" and parts[2] != "extending" else ""


def test_no_module_of_the_kernel_of_the_schemas_imports_a_model() -> None:
    graph = grimp.build_graph("recallog_schemas")
    kernel = [module for module in graph.modules if not module.startswith("recallog_schemas.models")]
    found = {(each, to) for each in kernel for to in graph.find_modules_directly_imported_by(each)}
    assert [pair for pair in sorted(found) if pair[1].startswith("recallog_schemas.models.")] == []
