"""The closing list of skipped tests, and the failure in CI of a skip that nobody allowed."""

import pytest

pytest_plugins = ["pytester"]

SKIPS = """
    import pytest

    @pytest.mark.skip(reason="no C compiler")
    def test_needs_gcc(): ...

    @pytest.mark.parametrize("size", [1, 2])
    def test_needs_gpu(size):
        pytest.skip("no GPU")

    def test_runs(): ...

    @pytest.mark.xfail(reason="known")
    def test_known():
        raise AssertionError
"""


@pytest.fixture
def run(pytester, monkeypatch):
    def run(source, *, ci, allowed="", args=()):
        monkeypatch.setenv("CI", ci)
        pytester.makeini("[pytest]")
        pytester.makepyfile(test_sample=source)
        pytester.mkdir("tests").joinpath("allowed_skips.txt").write_text(allowed)
        return pytester.runpytest("-p", "tests.not_run", *args)

    return run


def test_lists_each_skip_under_its_reason_before_the_closing_line(run):
    result = run(SKIPS, ci="")

    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        [
            "*Not run here, and why*",
            "  no C compiler",
            "    test_sample.py::test_needs_gcc",
            "  no GPU",
            "    test_sample.py::test_needs_gpu[[]1]",
            "    test_sample.py::test_needs_gpu[[]2]",
            "*1 passed, 3 skipped, 1 xfailed in *",
        ],
        consecutive=True,
    )


def test_says_so_when_everything_ran(run):
    run("def test_runs(): ...", ci="true").stdout.fnmatch_lines(["  nothing: every test*", "*1 passed in *"])


def test_skip_of_a_whole_module_is_listed(run):
    result = run("import pytest; pytest.skip('no torch', allow_module_level=True)", ci="true")

    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["  no torch", "    test_sample.py"])


def test_ci_fails_on_a_skip_that_is_not_allowed_and_names_it(run):
    result = run(SKIPS, ci="true", allowed="*::test_needs_gpu* no GPU\n")

    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["Failed: *allowed_skips.txt*", "  test_sample.py::test_needs_gcc  no C compiler"], consecutive=True
    )
    result.stdout.no_fnmatch_line("  test_sample.py::test_needs_gpu*")


def test_ci_passes_when_all_skips_are_allowed(run):
    allowed = "# why\n\ntest_sample.py::test_needs_gpu[1] no GPU\n*gpu[2]  no *\n*gcc  no C compiler\n"

    assert run(SKIPS, ci="true", allowed=allowed).ret == pytest.ExitCode.OK


def test_a_pattern_must_match_the_reason_too(run):
    assert run(SKIPS, ci="true", allowed="* no GPU\n").ret == pytest.ExitCode.TESTS_FAILED


def test_exit_status_of_pytest_is_kept(run):
    assert run("def test_fails(): assert False", ci="true").ret == pytest.ExitCode.TESTS_FAILED


def test_no_tests_stays_a_failure(run):
    assert run("", ci="true").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_allowed_line_without_a_reason_is_refused(run):
    result = run(SKIPS, ci="true", allowed="*::test_needs_gpu\n")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*allowed_skips.txt:1: '*::test_needs_gpu' gives no reason*"])
