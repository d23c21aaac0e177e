"""What several modules here share: a database of MLflow, whose tables take seconds to make."""

import shutil
from pathlib import Path

import pytest

from tests.sinks.support import needed


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needed("mlflow")
    from mlflow.tracking import MlflowClient

    path = tmp_path_factory.mktemp("mlflow") / "empty.db"
    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def mlflow_uri(tmp_path: Path, empty_database: Path) -> str:
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path}/mlflow.db"
