"""Files that survive a crash: replaced atomically, or appended to and repaired."""
