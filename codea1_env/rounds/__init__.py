"""Rounds: read replies, judge candidates, compute rewards, update the Mistake Book."""
