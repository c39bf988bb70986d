"""SQL gives on Larder what it gives on SQLite: files of statements and queries, each run on both."""

import pathlib

import pytest

from harness import sqllogic

FILES = sorted((pathlib.Path(__file__).parent / "sql_cases").glob("*.test"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_sqlite_says_what_the_file_says(path):
    assert not sqllogic.problems(sqllogic.Sqlite(), sqllogic.parse(path.read_text()))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_larder_says_it_too(path, client):
    assert not sqllogic.problems(sqllogic.Larder(client), sqllogic.parse(path.read_text()))


def test_there_are_enough():
    assert sum(len(sqllogic.parse(path.read_text())) for path in FILES) >= 300
