from collections.abc import Iterator

import pytest

from tests.compose.gating import NAMES, Gated, Service, service


@pytest.fixture
def behind() -> Iterator[Service]:
    with service() as serving:
        yield serving


@pytest.fixture
def gated(behind: Service) -> Iterator[Gated]:
    with Gated(behind.port, **NAMES) as running:
        yield running
