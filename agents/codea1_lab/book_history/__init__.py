"""Analysis of Mistake Books: how long cases stay, and which come back."""
