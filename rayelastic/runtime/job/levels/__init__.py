"""The loops of a coordinator: over hosts, whose CPUs it shares out, and over regions."""
