"""Second moments of numeric columns, and what is asked of them."""
