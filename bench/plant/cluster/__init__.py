"""A model of a job on a cluster, the *plant* of organic adaptation. Knows `policy` and `plan` types only."""
