"""What was tried: how a change is judged, what was in vain and for how long, and what paid in an earlier run."""
