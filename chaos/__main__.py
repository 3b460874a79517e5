"""`python -m chaos`: a run, its table, and its verdict. Ends with 1 where a promise was broken."""

from __future__ import annotations

import json
import sys

from chaos import report
from chaos.options import from_arguments
from chaos.run import Run


def main() -> int:
    options = from_arguments(sys.argv[1:])
    with Run(options) as run:
        run.strike()
        run.calm()
        found = run.judge()
    rows = report.rows(options, run, found)
    sys.stdout.write((report.markdown(rows) if options.markdown else report.table(rows)) + "\n")
    for line in report.breaches(found):
        sys.stdout.write(f"BREACH {line}\n")
    if options.json_file is not None:
        options.json_file.write_text(json.dumps(report.as_json(options, rows, found), indent=2) + "\n")
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
