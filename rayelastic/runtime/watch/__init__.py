"""What is said about a running job: metrics, log, bottleneck. Changes nothing."""
