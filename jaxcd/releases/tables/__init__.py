"""Tables of counts: the joint histogram, marginals of many columns, and what is asked of them."""
