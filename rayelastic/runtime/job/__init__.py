"""A job as a whole: its coordinator and the processing elements that it has."""
