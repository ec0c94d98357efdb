"""Tests of rules about runs, a file for each part of a training that they look at."""
