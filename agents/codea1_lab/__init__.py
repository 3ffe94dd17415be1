"""Analysis of runs: cross-play, matrix games, reports, the Mistake Book's history, rewards under other rules."""
