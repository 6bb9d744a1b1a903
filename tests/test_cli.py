"""The command line answers at once, and the doctor tells the truth."""

import json
import subprocess
import sys

from typer.testing import CliRunner

from measureflow import __version__, cli, measures

runner = CliRunner()


def test_version():
    result = runner.invoke(cli.main, ["--version"])
    assert result.exit_code == 0
    assert result.output.strip() == f"measureflow {__version__}"


def test_help_names_every_command():
    result = runner.invoke(cli.main, ["--help"])
    assert result.exit_code == 0
    for command in cli.main.registered_commands:
        assert (command.name or command.callback.__name__) in result.output


def test_unknown_command_is_a_usage_error():
    result = runner.invoke(cli.main, ["no-such-command"])
    assert result.exit_code == 2
    assert "no-such-command" in result.output


def test_help_loads_nothing_heavy():
    script = "import sys, measureflow.cli; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"}
    assert heavy.isdisjoint(run.stdout.split())


def test_doctor_finds_this_installation_well():
    result = runner.invoke(cli.main, ["doctor", "--json"])
    report = json.loads(result.output)
    assert [check["detail"] for check in report["checks"] if not check["ok"]] == []
    assert len(report["checks"]) > 0
    assert report["ok"]
    assert result.exit_code == 0
    assert report["required"]["torch"]
    assert report["optional"]["finufft"]
    assert set(report["threads"]) == {"cpus", "torch", "numba"}


def test_doctor_in_words_says_the_same():
    result = runner.invoke(cli.main, ["doctor"])
    assert "torch" in result.output
    assert "passed" in result.output
    assert "All is well." in result.output


def test_doctor_reports_a_broken_core_and_fails(monkeypatch):
    def broken(points, atoms):
        raise RuntimeError("no compiled kernel")

    monkeypatch.setattr(measures, "wasserstein2", broken, raising=False)
    result = runner.invoke(cli.main, ["doctor"])
    assert result.exit_code == 1
    assert "FAILED" in result.output
    assert "no compiled kernel" in result.output


def test_doctor_reports_a_missing_package_and_fails(monkeypatch):
    monkeypatch.setattr(cli, "_installed", lambda name: None if name == "scipy" else "1.0")
    result = runner.invoke(cli.main, ["doctor", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.output)["required"]["scipy"] is None
