"""Files that survive a crash: written whole, or appended to and cut back."""
