"""`python -m glassgrad.compat SCRIPT` runs a script with glassgrad under the name torch."""

from __future__ import annotations

from glassgrad.compat import main

main()
