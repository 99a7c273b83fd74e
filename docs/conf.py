"""How the site is built; `make docs` says with what, and where it goes."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx_gallery.scrapers import figure_rst

sys.path.insert(0, str(Path(__file__).parent))
import certree
from certree.show.picture import Picture
from public_names import write_reference

HERE = Path(__file__).parent


def pictures(block: object, block_vars: dict[str, Any], conf: dict[str, Any]) -> str:
    """What certree.show has drawn in a block of a script of the gallery."""
    shown, paths = block_vars.setdefault("shown", set()), []
    for value in block_vars["example_globals"].values():
        if isinstance(value, Picture) and id(value) not in shown:
            shown.add(id(value))
            paths.append(next(block_vars["image_path_iterator"]))
            value.savefig(paths[-1], dpi=130)
    return figure_rst(paths, conf["src_dir"])


project = "certree"
author = "The certree developers"
project_copyright = "the certree developers"
version = release = certree.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "public_names",
]
root_doc = "index"
templates_path = ["templates"]
exclude_patterns = ["gallery/**/*.ipynb", "gallery/**/*.py", "templates", "static", "images"]
suppress_warnings = ["config.cache"]
default_role = "code"
smartquotes = False
toc_object_entries_show_parents = "hide"

# Pages that are written anew by every build, before the others are read.
write_reference(HERE / "reference")
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc says the types in words
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "backreferences_dir": "gallery/used",
    "doc_module": ("certree",),
    "reference_url": {"certree": None},
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "min_reported_time": 0,
    "abort_on_example_error": True,
    "default_thumb_file": str(HERE / "images" / "tree.png"),
    "matplotlib_animations": False,
    "image_scrapers": ("matplotlib", pictures),
    "remove_config_comments": True,
    "capture_repr": (),  # what is to be seen is printed or drawn
    "write_computation_times": False,  # its page asks for scripts from elsewhere
}

html_theme = "pydata_sphinx_theme"
html_title = f"certree {release}"
html_favicon = "static/logo.svg"
html_static_path = ["static"]
html_css_files = ["certree.css"]
html_js_files = ["versions.js", "switcher.js"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "image_light": "static/logo.svg",
        "image_dark": "static/logo.svg",
        "text": f"certree {release}",
    },
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navbar_end": ["versions", "theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "use_edit_page_button": False,
    "navigation_with_keys": False,
    "back_to_top_button": False,
}
# Pages without others below them.
html_sidebars = {page: [] for page in ("index", "glossary")}


def mark_sentences(app: Sphinx, doctree: nodes.document) -> None:
    """Output with lines that no page is wide enough for, such as certificates, is text to be read."""
    for block in doctree.findall(nodes.literal_block):
        if block.get("language") == "output" and max(map(len, block.astext().splitlines())) > 110:
            block["classes"].append("sentences")


def lead_to_the_site(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links to pages outside docs lead to their places on the site."""
    source[0] = source[0].replace("](../../SECURITY.md)", "](../project/security.md)")


def setup(app: Sphinx) -> None:
    """Blocks that say what the block before them prints are plain text."""
    app.add_lexer("output", TextLexer)
    app.connect("source-read", lead_to_the_site)
    app.connect("doctree-read", mark_sentences)
