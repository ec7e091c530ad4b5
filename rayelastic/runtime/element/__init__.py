"""A PE: one native scheduler with its operators, links and state. Knows no job."""
