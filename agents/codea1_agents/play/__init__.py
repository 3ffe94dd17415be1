"""Playing: agents reply in games of `code_a1_v0`, one game or hundreds at a time."""
