"""How fast the product is, as ratios measured side by side. `make bench`; figures in docs/performance.md.

A program of its own: it runs the product as it is run, and nothing imports it.
"""
