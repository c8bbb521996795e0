"""Sphinx configuration; `make docs` builds with warnings as errors."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "metricwise"
author = "the metricwise developers"
project_copyright = f"%Y, {author}"
release = installed_version("metricwise")
version = release

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples/*.ipynb"]
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# Text
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "  # what is copied can be pasted: neither prompts nor output
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
default_role = "literal"  # numpydoc writes parameters in single backticks

# API
autosummary_generate = True
autodoc_inherit_docstrings = False  # what every metric has is documented once, in Metric
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc says types and shapes in words
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_validation_checks = set()

# Examples
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "ignore_pattern": r"serving",
    "within_subsection_order": "gallery_order.by_task",
    "minigallery_sort_order": "gallery_order.by_task",
    "doc_module": ("metricwise",),
    "reference_url": {"metricwise": None},
    "backreferences_dir": "examples/backreferences",
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page that loads scripts from the network
    "abort_on_example_error": True,
    "min_reported_time": 5,
}

# Site
html_theme = "pydata_sphinx_theme"
html_title = "metricwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["../src/metricwise/rules/rule.schema.json"]  # published as it is installed
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 4,
    "navbar_end": ["theme-switcher"],
    "navigation_depth": 2,
    "show_nav_level": 1,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# Pages of the menu that have no pages below them need no navigation at their side.
_LEAVES = (
    "index",
    "start",
    "beside_other_tools",
    "when_not",
    "glossary",
    "contributing",
    "developers",
    "changelog",
)
html_sidebars = {page: [] for page in _LEAVES}
