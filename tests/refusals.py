"""What is refused, and what is said then."""

import pytest

from dupre.errors import InputError


def refused(match, call, *given, **options):
    """The message, of one line, with which a call is refused."""
    with pytest.raises(InputError, match=match) as caught:
        call(*given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)
