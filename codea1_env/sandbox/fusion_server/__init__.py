"""`codea1 sandbox serve`: the sandbox behind the HTTP interface of SandboxFusion."""
