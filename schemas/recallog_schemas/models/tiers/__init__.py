"""Tiers: how fast entries age, and the plans that move and archive them."""
