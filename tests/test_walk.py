"""Five minutes with only the README in hand: its commands run as printed, and no message is a dead end."""

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from measureflow import cli

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/quickstart.md")
QUICKER = {  # what is added to a command so that a test need not wait for it
    "simulate": ["--n", "40", "--layers", "4", "--no-animate"],
    "cluster": ["--stability", "0"],
}
COMMAND = [sys.executable, "-m", "measureflow.cli"]


def commands() -> list[list[str]]:
    """Every command that a page prints, without the remark behind it."""
    text = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    lines = re.findall(r"^measureflow ([^#\n]+)", text, re.MULTILINE)
    return [list(words) for words in dict.fromkeys(tuple(shlex.split(line)) for line in lines)]


ANSWERED = [words for words in commands() if words[0] != "explore"]  # explore goes on until it is stopped


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder as the reader has it: a table of their own, and the configs of the clone."""
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(centre, 0.4, (40, 2)) for centre in (0, 5)])
    pd.DataFrame(rows, columns=["width", "height"]).to_csv(tmp_path / "data.csv", index=False)
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_pages_print_every_command_of_the_program():
    known = {command.name or command.callback.__name__ for command in cli.main.registered_commands}
    assert {words[0] for words in commands()} == known


@pytest.mark.parametrize("words", ANSWERED, ids=" ".join)
def test_a_printed_command_runs_and_the_files_it_names_are_there(desk, words):
    result = CliRunner().invoke(cli.main, words + QUICKER.get(words[0], []))
    assert result.exit_code == 0, result.output
    named = re.findall(r"^(?:The model is in )?((?:out|runs)/\S+)$", result.output, re.MULTILINE)
    assert named or words[0] in ("doctor", "reproduce") or "--json" in words
    assert [name for name in named if not (desk / name).exists()] == []


def test_the_report_names_files_that_lie_beside_it(desk):
    CliRunner().invoke(cli.main, ["cluster", "data.csv", "--stability", "0"])
    report = (desk / "out/cluster/report.html").read_text(encoding="utf-8")
    for name in ("labels.csv", "centres.csv"):
        assert name in report
        assert (desk / "out/cluster" / name).is_file()
    assert len(pd.read_csv(desk / "out/cluster/labels.csv")) == 80


class Parts(HTMLParser):
    """The scripts and styles of a page."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [value for name, value in attrs if tag in ("script", "link", "img") and name in ("src", "href")]


def test_explore_opens_with_the_table_and_stops_at_once(desk):
    server = subprocess.Popen([*COMMAND, "explore", "data.csv", "--no-browser"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = next(found[0] for line in server.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+", line)))
        with urllib.request.urlopen(address) as answer:
            page = Parts()
            page.feed(answer.read().decode())
        assert page.found
        for part in [*page.found, "api/examples"]:
            with urllib.request.urlopen(f"{address}/{part.lstrip('./')}") as answer:
                assert answer.status == 200
                assert part != "api/examples" or b"data.csv" in answer.read()
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) in (0, 130, -signal.SIGINT)


def interrupted(desk: Path, *more: str) -> int:
    """Steps done of a long training that is interrupted as soon as it has written a checkpoint of its own."""
    checkpoint = desk / "runs/long/checkpoint.safetensors"
    before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    run = subprocess.Popen([*COMMAND, "train", "long.toml", *more], stderr=subprocess.PIPE, text=True)
    while run.poll() is None and not (checkpoint.exists() and checkpoint.stat().st_mtime_ns > before):
        time.sleep(0.05)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=300)
    assert run.returncode == 2, said
    assert "go on with --resume" in said.replace("\n", " ")
    assert "Traceback" not in said
    return int(re.findall(r"interrupted after (\d+) of 100000", said.replace("\n", " "))[0])


def test_a_training_that_is_interrupted_says_how_to_go_on_and_goes_on(desk):
    text = (desk / "configs/tiny.toml").read_text()
    (desk / "long.toml").write_text(text.replace("steps = 20", "steps = 100000"))
    done = interrupted(desk)
    assert interrupted(desk, "--resume") > done


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "cluster"),
        (["clutser", "data.csv"], "No such command 'clutser'"),
        (["cluster"], "Missing argument 'data'"),
        (["cluster", "dta.csv"], "there is no file dta.csv"),
        (["cluster", "data.csv", "--columns", "width,hight"], "hight"),
        (["train", "configs/tiny.toml", "--out", "data.csv"], "data.csv is a file"),
        (["reproduce", "castin2025", "fig99"], "fig99"),
        (["reproduce", "castin2025", "fig1", "--out", "data.csv"], "data.csv is a file"),
        (["simulate", "--attention", "l3"], "l3"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_slip_is_answered_in_words_that_name_it(desk, words, told):
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == (2 if words else result.exit_code)
    assert told.lower() in result.output.replace("\n", " ").lower()
    assert "Errno" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_port_that_is_taken_is_told_with_a_way_out():
    from measureflow.explorer.server import create_app, serve

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ValueError, match=f"port {port} is not available: .*; leave out --port to take a free one"
        ) as told:
            serve(create_app(), port, browser=False)
    assert "Errno" not in str(told.value)


def test_a_file_and_a_folder_that_are_locked_are_told_before_the_work(desk, monkeypatch):
    def locked(path):
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", locked)
        result = CliRunner().invoke(cli.main, ["cluster", "data.csv"])
    assert result.output.strip() == "Cannot cluster data.csv: data.csv cannot be read: permission denied"
    monkeypatch.setattr(os, "access", lambda path, mode, **_: mode != os.W_OK)
    result = CliRunner().invoke(cli.main, ["cluster", "data.csv", "--out", "there/and/there"])
    assert f"{desk} cannot" in result.output.replace("\n", "")
    assert result.exit_code == 2
