"""How fast is it, as ratios measured in one run?  `make bench`; never a test."""
