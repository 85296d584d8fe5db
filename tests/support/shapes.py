"""Shapes and dtypes that the densities promise, held at each call that a test makes of them."""

import functools
import inspect

# Method -> (argument and its axes, what it returns: axes and dtype, "theta" for that of the argument).
# A letter is one number throughout a call: C networks, P entries of theta, L rows.
METHODS = {
    "log_prior": ("theta: C P", ["C: float64"]),
    "log_likelihood": ("theta: C P", ["C: float64"]),
    "log_prob": ("theta: C P", ["C: float64"]),
    "row_log_likelihood": ("theta: C P", ["C L: float64"]),
    "log_likelihood_and_gradient": ("theta: C P", ["C: float64", "C P: theta"]),
    "value_and_gradient": ("theta: C P", ["C: float64", "C P: theta"]),
}


def hold(cls):
    """Wrap the methods of `METHODS` that a class of densities defines."""
    for name, (argument, results) in METHODS.items():
        if name in vars(cls) and not getattr(vars(cls)[name], "__isabstractmethod__", False):
            setattr(cls, name, holding(vars(cls)[name], argument, results))


def holding(function, argument, results):
    """The function, with a TypeError where a shape or a dtype is not as promised."""
    name, axes = argument.split(": ")
    index = list(inspect.signature(function).parameters).index(name)

    @functools.wraps(function)
    def held(*arguments, **named):
        given = named[name] if name in named else arguments[index]
        sizes = {}
        _fit(f"{function.__qualname__}({name})", axes, given.shape, sizes)
        found = function(*arguments, **named)
        for promise, value in zip(results, found if len(results) > 1 else [found], strict=True):
            axes_found, dtype = promise.split(": ")
            _fit(function.__qualname__, axes_found, value.shape, sizes)
            if value.dtype != (given.dtype if dtype == name else dtype):
                raise TypeError(f"{function.__qualname__} returns {value.dtype}, not {dtype}.")
        return found

    return held


def _fit(what, axes, shape, sizes):
    letters = axes.split()
    sides = list(zip(letters, shape)) if len(letters) == len(shape) else [("rank", len(shape))]
    sizes = sizes if len(letters) == len(shape) else {"rank": len(letters)}
    for letter, size in sides:
        # Within programs a size may be unknown.
        if size is not None and sizes.setdefault(letter, size) != size:
            raise TypeError(f"{what} has shape {list(shape)}, not [{', '.join(letters)}].")


def hold_densities():
    """Wrap all densities of the package, which needs no TensorFlow yet."""
    from tfbnn.engine.density import potential, reparametrisation

    for module in (potential, reparametrisation):
        for thing in vars(module).values():
            is_density = inspect.isclass(thing) and issubclass(thing, potential.Density)
            if is_density and thing.__module__ == module.__name__:
                hold(thing)
