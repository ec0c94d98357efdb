"""`python -m glassgrad.compat SCRIPT` runs a script with glassgrad under the name torch; `--check SCRIPT` reads it."""

from __future__ import annotations

import sys

from glassgrad.compat import check, main

if sys.argv[1:2] == ["--check"]:
    raise SystemExit(check.main(sys.argv[2:]))
main()
