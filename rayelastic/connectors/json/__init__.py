"""Files with an object of JSON per line."""
