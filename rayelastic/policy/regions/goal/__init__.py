"""What users want to be reached, as a utilisation that replicas are sized for."""
