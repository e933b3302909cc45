"""Searches by conditional independence tests: PC, FCI, tree-guided PC, and what they share."""
