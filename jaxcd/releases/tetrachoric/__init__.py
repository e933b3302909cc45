"""Correlations of numeric columns from the signs of their values about a threshold, for many
columns.
"""
