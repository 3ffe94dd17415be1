"""What is closed at the end of a block, and what only if the block raises."""

from __future__ import annotations

import pytest

from codea1_env.records.closing import Closing


class Resource(Closing):
    is_open = True

    def close(self) -> None:
        self.is_open = False


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_it_is_closed_at_the_end_of_its_block_or_only_by_an_error(error: type[BaseException]) -> None:
    with Resource() as resource:
        assert resource.is_open
    assert not resource.is_open
    resource = Resource()
    with resource.close_on_error():
        pass
    assert resource.is_open
    with pytest.raises(error), resource.close_on_error():
        raise error
    assert not resource.is_open
