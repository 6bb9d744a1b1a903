"""How Sphinx builds these pages. The built site asks nothing of the network: formulas are MathML."""

import re
import sys
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import measureflow

sys.path.insert(0, str(Path(__file__).parent))  # for gallery_order

project = "measureflow"
author = "the measureflow authors"
copyright = author
version = release = measureflow.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery/*.md5", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
suppress_warnings = ["ref.python"]  # a shape such as (d, d) in a docstring is not the attribute d of two classes
default_role = "py:obj"  # `Softmax` in a docstring links to Softmax

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"  # the list beside a page is narrow
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say shapes; the code says types
napoleon_use_ivar = True  # attributes as a list, not as entries of their own

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",  # these are run, and their pictures shown
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",  # any other script is not a page
    "within_subsection_order": "gallery_order.AsRead",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "measureflow"
html_favicon = html_logo = "../web/public/icon.svg"  # the explorer's own
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["tables.js"]
html_sidebars = {page.stem: [] for page in Path(__file__).parent.glob("*.md")}  # pages without pages of their own
html_theme_options = {
    "logo": {"text": "measureflow"},
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}
html_show_sourcelink = False
html_copy_source = False

# MathJax would be fetched from elsewhere whenever a page is read; every browser now draws MathML by itself.
html_math_renderer = "mathml"


def mathml(translator, node, as_block):
    """Write one formula as MathML; one that docutils cannot read is a warning and stays TeX."""
    tex = node.astext().replace(r"\textstyle", "")  # docutils has it only at the head of a group; it is but a size
    try:
        translator.body.append(tex2mathml(tex, as_block=as_block))
    except MathError as error:
        logging.getLogger(__name__).warning("formula not understood: %s", error, location=node)
        translator.body.append(f"<code>{translator.encode(tex)}</code>")
    raise SkipNode


def escape_fitted_names(app, what, name, obj, options, lines):
    """``labels_`` ends in an underscore by scikit-learn's custom, which reStructuredText would take for a link."""
    lines[:] = [re.sub(r"(?<![`\w])(\w+)_(?=[\s,.;:)]|$)", r"\1\\_", line) for line in lines]


def leave_out(app, what, name, obj, skip, options):
    """Methods that scikit-learn adds to every estimator for its own plumbing."""
    return True if re.fullmatch(r"set_\w+_request|get_metadata_routing", name) else None


def setup(app):
    """Register the renderer of formulas and what is done to docstrings."""
    app.connect("autodoc-process-docstring", escape_fitted_names)
    app.connect("autodoc-skip-member", leave_out)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda translator, node: mathml(translator, node, False), None),
        block_renderers=(lambda translator, node: mathml(translator, node, True), None),
    )
