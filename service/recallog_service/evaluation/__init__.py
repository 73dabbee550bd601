"""Evaluation: how much of the evidence of a question is recalled, by the product's own path from ingest to answer.

locomo_questions   what is asked, as whom, and the turns that answer it
metrics            recall@k, reciprocal rank, percentiles, the paired bootstrap
result             asking all questions; the file that keeps what came of it; comparing two of them
"""
