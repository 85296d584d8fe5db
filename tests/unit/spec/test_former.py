"""Names that have ended answer with what stands in their place, at every entrance that had them."""

import pytest

import tfbnn
from tfbnn.engine.kernels import resolve_kernel
from tfbnn.spec.habits import FORMER

# Where a name was, as an attribute or as an argument.
ATTRIBUTES = [("kernels", "SMSUBU")]
ARGUMENTS = [(lambda: resolve_kernel("sms_ubu"), "sms_ubu")]


@pytest.mark.parametrize(("module", "name"), ATTRIBUTES)
def test_attributes_of_modules(module, name):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'") as caught:
        getattr(getattr(tfbnn, module) if module else tfbnn, name)
    assert FORMER[name] in str(caught.value)


@pytest.mark.parametrize(("call", "name"), ARGUMENTS, ids=[name for _, name in ARGUMENTS])
def test_arguments(call, name):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert FORMER[name] in str(caught.value)
