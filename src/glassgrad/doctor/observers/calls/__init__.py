"""Calls beside the model and its optimizer: clipping, schedules, seeds, loads of weights, scalers, own functions."""
