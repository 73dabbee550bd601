"""Readers of less common files: logs of model APIs, frameworks, coding agents, Discord."""
