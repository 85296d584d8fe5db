"""What tests of the command line share."""

QUICK = "--layers 3 --num-chains 2 --num-results 12 --num-burnin-steps 12 --verbose 0".split()


def check_refusal(result, *words):
    """Exit code 2, nothing on standard output, at most three lines that hold the words."""
    code, out, err = result
    assert (code, out) == (2, ""), err
    assert 0 < len(err.splitlines()) <= 3, err
    for word in words:
        assert word in err
