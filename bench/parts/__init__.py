"""One module for each thing that is measured: `run(options)` gives its figures."""
