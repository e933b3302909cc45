"""Covariances of features of columns of any kind, and what is asked of them."""
