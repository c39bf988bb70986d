"""Every transcript, on Larder and on redis-server, in RESP2 and in RESP3."""

import pathlib

import pytest

from harness import servers, transcript

FILES = sorted((pathlib.Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.fixture(scope="module")
def pair(shared_fleet):
    """Two servers that no other test has configured."""
    return shared_fleet.redis(), shared_fleet.new(servers.Larder)


@pytest.mark.parametrize("resp", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_transcript(path, resp, pair):
    oracle, subject = pair
    if not subject.alive:
        subject.process = None
        subject.start()
    transcript.run(path, oracle, subject, resp)
