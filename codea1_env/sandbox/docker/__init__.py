"""The sandbox in a container: tier `docker`."""
