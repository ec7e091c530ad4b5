"""What users want of a job beyond what is found by itself: goals, bounds of replicas, parameters of the papers."""
