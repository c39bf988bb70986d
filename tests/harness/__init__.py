"""What the black-box tests share: servers, a RESP client, transcripts, comparison of states."""
