"""Consistent reads of the views: read sessions, time travel, and waiting for views to catch up."""
