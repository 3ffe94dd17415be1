"""`codea1 web`: one page to play, watch and read."""
