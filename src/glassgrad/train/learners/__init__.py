"""Learners: one training step of a model and its optimizer, for each engine, behind one interface (`learner.py`)."""
