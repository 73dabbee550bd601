"""The view of tiers: the ageing of each entry with a tier, and the effects of plans and reports.

Modules by concern: `tables` for readers, `rules` for the constants and formulas that queries and plans share, `judging`
for what a plan may still change, `scheduling` for when the next plan is due, `projection` for the fold.
"""
