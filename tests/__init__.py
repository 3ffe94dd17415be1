"""A package, so that test modules import what they share from `tests.support`."""
