"""Reads Prometheus' text format and takes nothing that is not exactly right, as a scraper would not, and a little more:
what promtool calls bad style is wrong here too."""

import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
VALUE = re.compile(r"[0-9]+(\.[0-9]+)?")
ESCAPES = {"\\": "\\", '"': '"', "n": "\n"}
SUFFIXES = {"counter": [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


class Malformed(AssertionError):
    pass


def require(condition, what):
    if not condition:
        raise Malformed(what)


class Family:
    def __init__(self, name, help_text):
        self.name = name
        self.help = help_text
        self.type = None
        self.samples = {}  # (name, labels) to value; labels are a tuple of pairs, sorted

    def get(self, _suffix="", **labels):
        return self.samples[self.name + _suffix, tuple(sorted(labels.items()))]

    def label_names(self):
        return {name for _, labels in self.samples for name, _ in labels} - {"le"}


def parse_labels(text, line):
    """The labels at the start of text, which is behind the "{"; what is left behind the "}"."""
    labels = {}
    while True:
        name = LABEL_NAME.match(text)
        require(name and text[name.end() :].startswith('="'), f"a label expected: {line}")
        require(name[0] not in labels, f"label {name[0]} twice: {line}")
        text = text[name.end() + 2 :]
        value = []
        while text[:1] != '"':
            require(text, f"a label's value has no end: {line}")
            if text[0] == "\\":
                require(text[1:2] in ESCAPES, f"an unknown escape: {line}")
                value.append(ESCAPES[text[1]])
                text = text[2:]
            else:
                value.append(text[0])
                text = text[1:]
        labels[name[0]] = "".join(value)
        if text[1:2] == "}":
            return tuple(sorted(labels.items())), text[2:]
        require(text[1:2] == ",", f"neither , nor }} behind a label: {line}")
        text = text[2:]


def parse_sample(line):
    name = NAME.match(line)
    require(name, f"no name: {line}")
    rest, labels = line[name.end() :], ()
    if rest.startswith("{"):
        labels, rest = parse_labels(rest[1:], line)
    require(rest[:1] == " " and VALUE.fullmatch(rest[1:]), f"no value, or one that cannot be: {line}")
    return name[0], labels, float(rest[1:])


def check_histogram(family):
    sets = {}
    for (name, labels), value in family.samples.items():
        others = tuple(pair for pair in labels if pair[0] != "le")
        one = sets.setdefault(others, {"buckets": []})
        if name.endswith("_bucket"):
            require(len(others) < len(labels), f"{family.name}: a bucket without le")
            one["buckets"].append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        else:
            require(others == labels, f"{family.name}: le where there is no bucket")
            one[name[len(family.name) :]] = value
    for labels, one in sets.items():
        where = f"{family.name}{dict(labels)}"
        require("_sum" in one and "_count" in one, f"{where}: no sum, or no count")
        bounds, counts = zip(*one["buckets"])
        require(all(a < b for a, b in zip(bounds, bounds[1:])), f"{where}: bounds do not ascend")
        require(all(a <= b for a, b in zip(counts, counts[1:])), f"{where}: buckets are not cumulative")
        require(bounds[-1] == math.inf and counts[-1] == one["_count"], f"{where}: +Inf is not the count")
        each = [b - a for a, b in zip((0,) + counts, counts)]
        least = sum(n * low for n, low in zip(each, (0,) + bounds))
        most = sum(n * high for n, high in zip(each, bounds) if n)
        require(least <= one["_sum"] * 1.000001 <= most * 1.000002, f"{where}: the sum does not fit the buckets")


def check_family(family):
    name = family.name
    require(family.help and family.help[-1] == ".", f"{name}: no sentence of help")
    require((family.type == "counter") == name.endswith("_total"), f"{name}: counters, and no others, end in _total")
    for suffix in "_bucket", "_sum", "_count", "_info":
        require(not name.endswith(suffix) or suffix == "_info" and family.type == "gauge", f"{name}: means a suffix")
    if family.type == "histogram":
        check_histogram(family)


def parse(body):
    """Families by name."""
    text = body.decode("utf-8") if isinstance(body, bytes) else body
    require(text.endswith("\n") and "\r" not in text and "\n\n" not in text, "lines end with one line feed")
    families, family = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, help_text = line[7:].partition(" ")
            require(NAME.fullmatch(name), f"not a name: {line}")
            require(name not in families, f"{name} comes twice")
            require(family is None or family.type, f"no type before {line}")
            family = families[name] = Family(name, help_text)
        elif line.startswith("# TYPE "):
            name, _, kind = line[7:].partition(" ")
            require(family and name == family.name and family.type is None, f"a type out of place: {line}")
            require(kind in SUFFIXES, f"not a type: {line}")
            family.type = kind
        else:
            name, labels, value = parse_sample(line)
            require(family and family.type, f"no family yet: {line}")
            require(name in [family.name + s for s in SUFFIXES[family.type]], f"not of {family.name}: {line}")
            require((name, labels) not in family.samples, f"twice: {line}")
            family.samples[name, labels] = value
    for family in families.values():
        check_family(family)
    return families


def check_monotonic(before, after):
    """What counts never goes back, and what was there stays."""
    require(set(before) == set(after), "families came or went")
    for name, family in before.items():
        for sample, value in family.samples.items():
            require(sample in after[name].samples, f"{sample} is gone")
            if family.type != "gauge":
                require(after[name].samples[sample] >= value, f"{sample} went back")
