import pytest

from tests.examples.support import Example


@pytest.fixture
def example(tmp_path):
    return Example(tmp_path)
