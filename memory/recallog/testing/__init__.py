"""Tests of a user's own adapters. The suites are in the package `recallog-testing`."""
