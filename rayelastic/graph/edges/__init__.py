"""Where tuples come from and go to: sources, sinks, files and paths. Know no engine, and of operators only `count`."""
