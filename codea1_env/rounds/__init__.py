"""Rounds: replies are read, candidates judged, rewards computed, the Mistake Book updated."""
