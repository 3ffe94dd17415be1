"""The settings of a training run: as TOML has them, read from files and presets, and the models that they name."""
