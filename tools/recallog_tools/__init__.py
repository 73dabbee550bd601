"""Tools of the repository, which the wheel leaves out: they write everything that is generated from the code."""
