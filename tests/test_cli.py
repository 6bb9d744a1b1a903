"""The command line answers at once, and the doctor tells the truth."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from measureflow import __version__, cli, doctor, measures

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


def test_doctor_finds_this_installation_well():
    result = runner.invoke(cli.main, ["doctor", "--json"])
    report = json.loads(result.stdout)
    assert [check["detail"] for check in report["checks"] if not check["ok"]] == []
    assert len(report["checks"]) > 0
    assert report["ok"]
    assert result.exit_code == 0
    assert report["required"]["torch"]
    assert report["optional"]["dask"]
    assert "dask" not in report["required"]
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
    monkeypatch.setattr(doctor, "installed", lambda name: None if name == "scipy" else "1.0")
    result = runner.invoke(cli.main, ["doctor", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout)["required"]["scipy"] is None


def test_doctor_names_a_package_that_is_too_old(monkeypatch):
    monkeypatch.setattr(doctor, "installed", lambda name: "1.0" if name == "scipy" else None)
    ok, detail = doctor.versions()
    assert not ok
    assert detail == "scipy 1.0 is not >=1.11"


def test_doctor_reports_weights_that_changed(monkeypatch):
    monkeypatch.setattr(doctor, "PROBLEMS", ())
    monkeypatch.setattr(doctor.hashlib, "sha256", lambda content: doctor.hashlib.sha1(content))
    report = doctor.diagnose()
    assert not report["ok"]
    assert all(check["name"].startswith("weights of") for check in report["checks"])


def test_every_command_shows_examples():
    for command in cli.main.registered_commands:
        assert "Examples:" in (command.callback.__doc__ or ""), command.callback.__name__


def test_list_of_reproductions_as_json():
    result = runner.invoke(cli.main, ["reproduce", "--list", "--json"])
    assert result.exit_code == 0
    assert "fig1" in json.loads(result.stdout)["castin2025"]


def test_simulation_as_json(tmp_path):
    options = ["--gaussian", "--time", "0.1", "--layers", "2", "--no-animate", "--json", "--out", str(tmp_path)]
    result = runner.invoke(cli.main, ["simulate", *options])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["divergence"] == "none"
    assert report["blow_up_time"] is None
    assert all((tmp_path / file).exists() for file in report["files"])


def test_unknown_paper_is_an_error_in_words():
    result = runner.invoke(cli.main, ["reproduce", "nobody2025"])
    assert result.exit_code == 2
    assert "paper must be one of" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "nofile.toml"], "there is no config nofile.toml"),
        (["train", "."], "is a folder"),
        (["cluster", "."], "is a folder; name a file in it"),
        (["cluster", "nofile.csv"], "there is no file nofile.csv"),
        (["explore", "nofile.parquet"], "there is no file nofile.parquet"),
        (["explore", "."], "is a folder; name a file in it"),
        (["simulate", "--out", "taken"], "--out must name a folder, and taken is a file"),
    ],
)
def test_a_wrong_path_is_a_sentence_and_loads_no_torch(tmp_path, arguments, words):
    (tmp_path / "taken").write_text("")
    code = f"import sys; from measureflow import cli\ntry: cli.main({arguments!r})\n"
    code += "except SystemExit as end: code = end.code\nassert 'torch' not in sys.modules; sys.exit(code)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert "Errno" not in done.stderr
    assert "Traceback" not in done.stderr
