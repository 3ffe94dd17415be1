"""Code that runs inside sandboxed processes. Standard library only; trusted code imports only constants of it."""
