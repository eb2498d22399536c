"""What is generated from declarations in the code is what the code declares now."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_generated_page_is_of_this_tree() -> None:
    pages: dict[Path, str] = generator().pages()
    assert pages
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name}: run python docs/generate.py"
