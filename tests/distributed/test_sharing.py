"""How memory is shared between processes, as programs ask for it."""

import pytest

from pullback.distributed import multiprocessing


def test_files_by_name_may_be_asked_for_and_descriptors_are_taken_with_a_warning():
    multiprocessing.set_sharing_strategy("file_descriptor")
    with pytest.warns(UserWarning, match="memory is shared by file descriptors here, not by file_system"):
        multiprocessing.set_sharing_strategy("file_system")
    assert multiprocessing.get_sharing_strategy() == "file_descriptor"


def test_an_unknown_way_of_sharing_is_refused():
    with pytest.raises(AssertionError, match="invalid sharing strategy 'telepathy', expected one of"):
        multiprocessing.set_sharing_strategy("telepathy")
