"""Sphinx's configuration: `python docs/build.py` gathers the sources and builds them with it."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]

from glassgrad import __version__  # noqa: E402 - found through the path above

project = "glassgrad"
author = "The glassgrad authors"
project_copyright = "The glassgrad authors"
version = release = __version__
extensions = ["myst_parser", "sphinx_copybutton", "sitegen.extension"]
root_doc = "index"
source_suffix = {".md": "markdown"}
exclude_patterns = ["files"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
python_maximum_signature_line_length = 88
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output):not(.whole-file) > div.highlight > pre"

templates_path = [str(Path(__file__).resolve().parent / "templates")]
html_theme = "furo"
html_title = f"glassgrad {version}"
html_static_path = [str(Path(__file__).resolve().parent / "static")]
html_css_files = ["site.css"]
html_js_files = ["filter.js", "site.js"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "default"
pygments_dark_style = "github-dark"
