"""The package has a budget of code: whoever adds a capability takes something needless away."""

from tests.support.code_lines import counts, num_code_lines

# Infinite width took 990 lines and nine files, populations and nested R-hat 240, less 90 of searches that they
# replace, the predictive distribution 400 and a file, counts, skpro and bars that say where 800 and three files,
# cross sections from spectra to a scan (tables, expressions, networks of errors) 1080 and eight files, leverage by
# derivatives 95, less 45 and a file of a reader of tables. Reading all packages twice for what nobody would miss gave
# 340 back, and mending some ninety defects of combinations of features took 420, less 240 of hints and second checks;
# fifty more took 210.
MOST_LINES = 31_753
MOST_FILES = 307
MOST_LINES_OF_A_ROOM = 4_000


def test_the_package_stays_within_its_budget():
    found = counts()
    assert sum(lines for lines, _ in found.values()) <= MOST_LINES
    assert sum(files for _, files in found.values()) <= MOST_FILES
    assert max(lines for lines, _ in found.values()) <= MOST_LINES_OF_A_ROOM


def test_docstrings_comments_and_blank_lines_are_not_code():
    source = '"""What it is."""\n\n# Why.\nx = """\n\n"""\n\ndef f():\n    """Says it."""\n    return (\n        x\n    )\n'
    assert num_code_lines(source) == 3 + 1 + 3
