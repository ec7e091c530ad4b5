"""How a processing element saves what its operators have, and reads it again. Knows no job."""
