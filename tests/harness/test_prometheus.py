"""What the reader of metrics must not let pass."""

import pytest

from . import prometheus

GOOD = r"""# HELP a_total As.
# TYPE a_total counter
a_total{x="1",y="\\ \" \n é"} 1
a_total{x="2",y=""} 0
# HELP b_bytes Bs.
# TYPE b_bytes gauge
b_bytes 1.5
# HELP c_seconds Cs.
# TYPE c_seconds histogram
c_seconds_bucket{le="1"} 1
c_seconds_bucket{le="2"} 3
c_seconds_bucket{le="+Inf"} 3
c_seconds_sum 4.5
c_seconds_count 3
# HELP d Ds.
# TYPE d gauge
"""

BAD = {
    "no end of the line": (GOOD, GOOD[:-1]),
    "an empty line": ("# HELP b_bytes", "\n# HELP b_bytes"),
    "a carriage return": ("b_bytes 1.5", "b_bytes 1.5\r"),
    "no help": ("# HELP b_bytes Bs.\n", ""),
    "help without words": ("# HELP b_bytes Bs.", "# HELP b_bytes"),
    "no type": ("# TYPE b_bytes gauge\n", ""),
    "an unknown type": ("b_bytes gauge", "b_bytes meter"),
    "another's type": ("# TYPE b_bytes gauge", "# TYPE c_bytes gauge"),
    "the type behind a sample": ("# TYPE b_bytes gauge\nb_bytes 1.5\n", "b_bytes 1.5\n# TYPE b_bytes gauge\n"),
    "a family twice": ("# HELP d Ds.\n# TYPE d gauge", "# HELP b_bytes Ds.\n# TYPE b_bytes gauge"),
    "a sample twice": ("b_bytes 1.5\n", "b_bytes 1.5\nb_bytes 2\n"),
    "a sample of another family": ("b_bytes 1.5", "a_total 1.5"),
    "a gauge called _total": ("b_bytes", "b_total"),
    "a counter not called _total": ("a_total", "a"),
    "a name with a dash": ("b_bytes", "b-bytes"),
    "no value": ("b_bytes 1.5", "b_bytes"),
    "a value that is no number": ("b_bytes 1.5", "b_bytes NaN"),
    "a negative value": ("b_bytes 1.5", "b_bytes -1.5"),
    "a time": ("b_bytes 1.5", "b_bytes 1.5 1700000000"),
    "a label twice": ('x="1",y', 'x="1",x'),
    "a label without quotes": ('x="1"', "x=1"),
    "labels without an end": ('y=""}', 'y=""'),
    "a quote that is not escaped": ('\\"', '"'),
    "an unknown escape": ("\\n", "\\t"),
    "bounds that do not ascend": ('le="1"', 'le="2.5"'),
    "buckets that are not cumulative": ('le="1"} 1', 'le="1"} 4'),
    "no +Inf": ('c_seconds_bucket{le="+Inf"} 3\n', ""),
    "a count that is not +Inf's": ("c_seconds_count 3", "c_seconds_count 4"),
    "no sum": ("c_seconds_sum 4.5\n", ""),
    "a sum that is too small": ("c_seconds_sum 4.5", "c_seconds_sum 1.9"),
    "a sum that is too large": ("c_seconds_sum 4.5", "c_seconds_sum 5.1"),
    "a bucket without a bound": ('c_seconds_bucket{le="1"} 1', "c_seconds_bucket 1"),
}


def test_good():
    families = prometheus.parse(GOOD.encode())
    assert list(families) == ["a_total", "b_bytes", "c_seconds", "d"]
    assert families["a_total"].get(x="1", y='\\ " \n é') == 1
    assert families["c_seconds"].get("_bucket", le="2") == 3
    assert families["a_total"].label_names() == {"x", "y"} and families["c_seconds"].label_names() == set()


@pytest.mark.parametrize("what", BAD)
def test_bad(what):
    good, bad = BAD[what]
    assert good in GOOD
    with pytest.raises(prometheus.Malformed):
        prometheus.parse(GOOD.replace(good, bad))


WORSE = {
    "a sample that is gone": ('x="2"', 'x="3"'),
    "a counter that went back": ('é"} 1', 'é"} 0'),
    "a family that is gone": ("# HELP d Ds.\n# TYPE d gauge\n", ""),
}


@pytest.mark.parametrize("what", WORSE)
def test_monotonic(what):
    before = prometheus.parse(GOOD)
    prometheus.check_monotonic(before, prometheus.parse(GOOD.replace("1.5", "0.5")))
    with pytest.raises(prometheus.Malformed):
        prometheus.check_monotonic(before, prometheus.parse(GOOD.replace(*WORSE[what])))
