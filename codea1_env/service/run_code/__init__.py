"""SandboxFusion's `POST /run_code`: its bodies, and the posted program inside the sandbox."""
