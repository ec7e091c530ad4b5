"""Sources of users: objects that are asked for rows, partition by partition."""
