"""How Sphinx builds these pages. The built site asks nothing of the network: formulas are MathML."""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import measureflow

project = "measureflow"
author = "the measureflow authors"
copyright = author
version = release = measureflow.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "gallery/*.md5", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
default_role = "py:obj"  # `Softmax` in a docstring links to Softmax

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say shapes; the code says types

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",  # these are run, and their pictures shown
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",  # any other script is not a page
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "measureflow"
html_theme_options = {
    "show_toc_level": 2,
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


def setup(app):
    """Register the renderer of formulas."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda translator, node: mathml(translator, node, False), None),
        block_renderers=(lambda translator, node: mathml(translator, node, True), None),
    )
