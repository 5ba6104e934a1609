"""The commands of `jobslab`, a module each; see `cli`."""
