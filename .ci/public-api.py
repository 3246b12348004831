#!/usr/bin/env python3
"""The public API as text, out of rustdoc's pages: the declaration of every item, of its methods and of its impls.

    cargo clean --doc && cargo doc --no-deps --all-features
    .ci/public-api.py target/doc/synthesizer_attention > .ci/public-api.txt

What every type has (auto traits, blanket impls) and what an impl has from its trait are left out."""
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

ITEM = re.compile(r"(struct|enum|trait|fn|constant|static|type|macro|union|attr|derive)\.\w+\.html")
EVERY_TYPE = {"synthetic-implementations-list", "blanket-implementations-list"}
TRAITS = "trait-implementations-list"
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}


class Declarations(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.lines = [], []  # tags with their ids, "header" for one whose text is wanted

    def handle_starttag(self, tag, attributes):
        if tag in VOID:
            return
        attributes = dict(attributes)
        inside = {name for _, name in self.open}
        wanted = {"item-decl", "code-header"} & set((attributes.get("class") or "").split())
        wanted = wanted and not inside & EVERY_TYPE and not (TRAITS in inside and tag == "h4")
        self.open.append((tag, "header" if wanted else attributes.get("id")))
        if wanted:
            self.lines.append("")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if any(name == "header" for _, name in self.open):
            self.lines[-1] += data


for page in sorted(Path(sys.argv[1]).rglob("*.html")):
    if ITEM.fullmatch(page.name):
        declarations = Declarations()
        declarations.feed(page.read_text())
        if declarations.lines:  # else the old address of an item that stands elsewhere
            print(page.relative_to(sys.argv[1]).with_suffix(""))
        for line in declarations.lines:
            print("   ", " ".join(line.split()))
