"""The loops of a coordinator: over hosts, which are shared out, and beside it that over regions."""
