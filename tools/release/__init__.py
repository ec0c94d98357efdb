"""`make release`: build wheel and source archive, check them, use them in fresh environments, and list what is in them.

`archives.py` builds twice and compares the bytes; `checks.py` runs the checkers of packages; `environments.py` installs
the wheel under every Python that is found and runs `smoke.py` there, far from the checkout; `sbom.py` writes the bill
of materials. Nothing is published: docs/release.md says who does that, and when.
"""
