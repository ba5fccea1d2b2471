"""The pages of the site, and docs.generate, which writes those that are made from the code."""
