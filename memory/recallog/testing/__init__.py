"""Tests of users' adapters. The suites are in the package `recallog-testing`."""
