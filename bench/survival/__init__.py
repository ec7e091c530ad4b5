"""What it costs a job to be able to survive, and how soon it goes on after a loss."""
