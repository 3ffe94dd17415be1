"""`codea1 serve`: the judge and the sandbox over HTTP, for clients in any language."""
