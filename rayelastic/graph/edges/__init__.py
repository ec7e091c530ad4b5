"""Sources and sinks: the descriptions of files, tables and services that tuples come from and go to. Know no engine."""
