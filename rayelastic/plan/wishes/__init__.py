"""What users want of the regions of a job beyond what is found by itself: goals, and bounds of replicas."""
