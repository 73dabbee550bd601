"""Operations: what a caller may ask for, each declared once as a typed method; every door is derived from that."""
