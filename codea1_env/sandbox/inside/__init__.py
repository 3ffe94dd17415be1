"""Code that runs inside sandboxed processes. Never imported by trusted code; standard library only."""
