"""Findings and check-ups as lines of text, and numbers for common loggers."""
