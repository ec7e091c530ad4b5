"""How a processing element and others reach each other: where they come in, how it dials them, the links that stay."""
