"""A seeded bug, and ways to seed one."""

from dataclasses import dataclass, field

__all__ = ["Bug", "altered", "around", "without"]


@dataclass(frozen=True)
class Bug:
    """One fault.

    Attributes:
        changes: What is wrong with it in place, one line.
        patch: Seeds it: a function of a pytest.MonkeyPatch.
        case: Name of the kernel's case, all of whose checks are tried; None for faults elsewhere.
        checks: Further checks that are tried, by names that begin with the layer: "A", "B" or
            "engine". A check takes no arguments; it raises an AssertionError, or returns p.
        seen_by: Name of the check that the default run asks; the first of `checks` or "B skewed"
            where nothing is said.
        survives: Why no check can see it, for a bug that none sees.
    """

    changes: str
    patch: object
    case: str | None = None
    checks: dict = field(default_factory=dict)
    seen_by: str = ""
    survives: str = ""


def without(owner, name, value):
    """A patch that replaces an attribute of a class or module."""
    return lambda patch: patch.setattr(owner, name, value)


def around(owner, name, wrap):
    """A patch that replaces a function by wrap(the function)."""
    return lambda patch: patch.setattr(owner, name, wrap(getattr(owner, name)))


def altered(cls, change):
    """A patch that changes what `one_step` returns: change(results before, after)."""

    def wrap(original):
        def one_step(self, state, results, seed=None):
            new, after = original(self, state, results, seed=seed)
            return new, change(results, after)

        return one_step

    return around(cls, "one_step", wrap)
