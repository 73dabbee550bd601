"""The view of tiers: how fast each entry that carries a tier ages, and what plans and reports have made of it.

Modules by concern: `tables` for readers, `rules` for the constants and formulas that queries and plans share, `judging`
for what a plan may still change, `scheduling` for when the next plan is due, `projection` for the fold.
"""
