"""Analysis of what was played and trained: cross-play, games, reports, the Mistake Book's history, other rules."""
