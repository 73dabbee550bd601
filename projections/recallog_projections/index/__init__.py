"""The semantic index: the projection of documents, embedders, engines, and the store that connects them."""
