"""Readers of files that few people have: LangChain and LangGraph, SWE-agent."""
