import sys

from trainvitals.run import ranks


def test_outside_ray_the_launchers_own_variables_name_the_launch(monkeypatch):
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    environ = {"SLURM_JOB_ID": "17", "RAY_JOB_ID": "01000000"}
    assert ranks.launch(environ) is environ


def test_a_ray_that_does_not_answer_as_expected_changes_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", object())
    environ = {"SLURM_JOB_ID": "17", "RAY_JOB_ID": "01000000"}
    assert ranks.launch(environ) is environ
