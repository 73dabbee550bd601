"""Operations: the calls that a memory offers, each declared once as a typed method from which all interfaces are
derived."""
