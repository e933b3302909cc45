"""Algorithms exactly as their papers and code have them, so that their tables can be compared; none is proved."""
