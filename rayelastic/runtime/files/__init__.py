"""Files as batches and batches as files. Know no scheduler."""
