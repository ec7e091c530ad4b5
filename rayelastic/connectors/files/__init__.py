"""What connectors of files share: locations, decompressed text, columns and their casts. Knows no format."""
