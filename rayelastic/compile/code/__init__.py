"""The results of compiling a user's function: values that are shipped, and explanations of failures."""
