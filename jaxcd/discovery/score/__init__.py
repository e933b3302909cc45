"""Searches by score: exact, over orders, over equivalence classes, hybrid, and Markov chains."""
