"""The semantic index: embedders, the engine that holds the vectors, and the projection that says what is indexed."""
