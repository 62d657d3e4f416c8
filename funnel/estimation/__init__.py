"""What a data user can recover of true frequencies, and how exactly."""
