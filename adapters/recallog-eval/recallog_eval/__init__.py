"""Evaluation of recall: how much of the evidence for a question is found, on the same path as in production.

locomo_questions   the questions of a LoCoMo file, each with its asker and the turns that answer it
facts              facts drawn from the conversations while they are published
metrics            recall@k, reciprocal rank, percentiles, the paired bootstrap
baselines          BM25 and cosine over single turns, for comparison
result             answering all questions; result files and their comparison
"""
