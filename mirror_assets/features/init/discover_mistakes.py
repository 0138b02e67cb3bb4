"""The rule over the rules of `discover`."""

from __future__ import annotations

from mirror_assets.config.document import Document
from mirror_assets.config.rules import Mistakes, discover_rules
from mirror_assets.features.init.discover_rule import NewTables


def useful_rules(document: Document) -> Mistakes:
    """Refuse settings of a rule of `discover` that have no effect."""
    for rule in discover_rules(document):
        if "keys" in document.names(*rule, "settings"):
            yield (*rule, "settings", "keys"), "set them as `keys: {default: […]}` of the rule"
        if document.get(*rule, "approved") and document.get(*rule, "new_tables") != NewTables.HOLD.value:
            yield (*rule, "approved"), "it needs `new_tables: hold`; otherwise no table waits for approval"
