"""The trainings of the command line: names, digits, text and points in the plane."""
