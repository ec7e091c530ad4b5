"""What an operator is, as the layers below see it, and what all declarations share. Knows no particular operator."""
