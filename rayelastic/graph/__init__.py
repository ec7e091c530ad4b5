"""What the user declared: streams, operators, schemas, keys, state. Nothing of threads, PEs, Ray or native code."""
