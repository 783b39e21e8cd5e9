"""What the tests of the command line say of an outcome."""


def refused(outcome, *words):
    """Bad input: one sentence on stderr, exit status 2, no traceback."""
    assert outcome.status == 2
    assert "Traceback" not in outcome.err + outcome.out
    sentences = [line for line in outcome.err.splitlines() if line.strip()]
    assert len(sentences) == 1, outcome.err
    for word in words:
        assert word in sentences[0]


def contents(folder):
    """Return the bytes of every file below a folder, by name."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
