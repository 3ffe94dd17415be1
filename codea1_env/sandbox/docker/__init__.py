"""The sandbox `docker`: jobs run in containers."""
