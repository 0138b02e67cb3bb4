"""Delta's private classes, used only with the Delta version on which tests prove them."""
