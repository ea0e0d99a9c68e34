"""The measuring harness behind `magmadnn bench`, and the shared case lists (`cases`)."""
