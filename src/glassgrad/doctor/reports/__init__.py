"""Findings and check-ups as lines of text, and numbers for the loggers that people use."""
