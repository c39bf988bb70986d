"""Every transcript, on Larder and on redis-server, in RESP2 and in RESP3."""

import pathlib

import pytest

from harness import transcript

FILES = sorted((pathlib.Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("resp", [2, 3], ids=["resp2", "resp3"])
@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_transcript(path, resp, oracle, subject):
    transcript.run(path, oracle, subject, resp)
