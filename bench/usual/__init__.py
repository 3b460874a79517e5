"""What is compared with: the usual design, as most would write it. Nothing of it is the product's."""
