"""Readers of files that few people have: logs of model APIs, frameworks, coding agents, Discord."""
