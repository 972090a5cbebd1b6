"""Tasks with an answer that can be checked, made anew anywhere from their name."""
