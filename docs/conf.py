"""Settings of Sphinx: `make docs` writes the site to build/docs."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import get_type_hints

from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring

from codea1_agents.train.grpo import hyperparameters, settings
from codea1_env import __version__

project = "codea1-env"
author = "the authors of codea1-env"
release = __version__
html_title = f"codea1-env {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_show_copyright = False
exclude_patterns = ["experiments/*/*.jsonl"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
# Links to files of the repository that are not pages, such as examples, become downloads.

# The site is built without the packages that only training and language models need.
autodoc_mock_imports = ["peft", "ray", "tokenizers", "torch", "transformers", "vllm"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_use_rtype = False
default_role = "code"
suppress_warnings = ["myst.header"]  # reports of experiments begin with a heading of the third level
add_module_names = False

_ATTRIBUTES = ("attribute", "data", "property")
_docstrings: dict[str, list[str]] = {}


def keep(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Remember the docstring of an attribute, of which Napoleon takes the words before a colon for a type."""
    if what in _ATTRIBUTES:
        _docstrings[name] = list(lines)


def restore(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Read the docstring of an attribute as that of a method."""
    if what in _ATTRIBUTES:
        lines[:] = GoogleDocstring(_docstrings.pop(name), app.config, app, "method", name).lines()


def setup(app: Sphinx) -> None:
    """Connect what runs before and after Napoleon, and show `int` where pydantic checks a range."""
    for each in filter(is_dataclass, [*vars(hyperparameters).values(), *vars(settings).values()]):
        each.__init__.__annotations__ = get_type_hints(each.__init__)
        each.__annotations__ = get_type_hints(each)
    app.connect("autodoc-process-docstring", keep, priority=400)
    app.connect("autodoc-process-docstring", restore, priority=600)
