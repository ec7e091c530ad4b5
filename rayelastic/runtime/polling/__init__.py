"""Sources of users: objects that are polled for rows, partition by partition."""
