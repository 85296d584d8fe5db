"""What a seeded bug is, and ways to seed one."""

from dataclasses import dataclass

__all__ = ["Bug", "altered", "around", "without"]


@dataclass(frozen=True)
class Bug:
    """One fault.

    Attributes:
        changes: What is wrong with it in place, one line.
        patch: Seeds it: a function of a pytest.MonkeyPatch.
        seen_by: Name of the check that catches it in the default run.
        case: Name of the kernel's case, all of whose checks are tried; None for faults elsewhere.
        shared: Names of `mutation.SHARED` checks that are tried too.
        survives: Why no check can see it, for a bug that none sees.
    """

    changes: str
    patch: object
    seen_by: str = "B skewed"
    case: str | None = None
    shared: tuple = ()
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
