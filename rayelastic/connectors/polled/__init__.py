"""Objects of users that the runtime polls for rows."""
