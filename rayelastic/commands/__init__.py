"""Commands of the command line that have a file of their own; `rayelastic.cli` puts them together."""
