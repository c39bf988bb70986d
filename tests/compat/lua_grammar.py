"""Random Lua scripts that call random commands, for the differential test of scripting.

A script is made of statements, one a line, that call commands of grammar.py, keep what they answer in variables, look
at it, give it to other commands, and fail now and then; and of one expression that it returns. Everything that it does
depends on the seed and on replies that the two servers must have in common: a reply without an order, or one left to
chance, is returned but never looked at, and decides how the script's own reply is compared.
"""

import hashlib

from compat import grammar
from harness import compare

# From the strictest rule to the laxest; a script's reply is compared by the laxest of its commands' rules.
RULES = [compare.exact, compare.unordered, compare.shape]
# Strings and lists that scripts alone use: what goes there may come from anywhere.
own_key = grammar.of("o1", "o2", "o3")
own_list = grammar.of("ol1", "ol2")

# S makes text of any value, without addresses; N a number; D tells all there is in a value, with the types.
PRELUDE = """local function S(x) if type(x) == 'table' then return 'table' .. #x end return tostring(x) end
local function N(x) return tonumber(x) or (type(x) == 'table' and #x) or 0 end
local D
D = function(x)
if type(x) ~= 'table' then return type(x) .. ':' .. tostring(x) end
local t = {}
for k, v in pairs(x) do t[#t + 1] = D(k) .. '=' .. D(v) end
table.sort(t)
return '{' .. table.concat(t, ',') .. '}'
end"""

REFUSED = [
    [b"MULTI"],
    [b"EXEC"],
    [b"WATCH", b"k1"],
    [b"EVAL", b"return 1", b"0"],
    [b"EVALSHA", b"x", b"0"],
    [b"SCRIPT", b"FLUSH"],
    [b"NOSUCH", b"x"],
    [b""],
    [b"CLIENT", b"NOSUCH"],
    [b"OBJECT", b"NOSUCH", b"k1"],
    [b"AUTH", b"x"],
]


def literal(data):
    """Bytes as a Lua string."""
    return "'" + "".join(chr(c) if 32 <= c < 127 and c not in b"'\\" else f"\\{c:03d}" for c in data) + "'"


class Script:
    """One script as it is being made."""

    def __init__(self, r, commands):
        self.r = r
        self.commands = commands
        self.lines = []
        self.depth = 0
        self.keys = []
        self.argv = []
        self.known = []  # variables with what both servers must have answered
        self.returned = []  # variables that may only be returned
        self.rule = compare.exact
        self.count = 0

    # --- commands

    def command(self):
        """A command's arguments, and the rule of its reply."""
        r = self.r
        if r.random() < 0.03:
            return r.choice(REFUSED), compare.exact
        for _ in range(50):
            args, rule = self.commands.command()
            if rule in RULES and sum(map(len, args)) < 20_000:
                return args, rule
        return [b"PING"], compare.exact

    def argument(self, data):
        """One argument of redis.call: a literal, a number, or an element of KEYS or ARGV."""
        r = self.r
        if len(data) > 200 or r.random() < 0.15:
            into, name = (self.keys, "KEYS") if r.random() < 0.4 else (self.argv, "ARGV")
            into.append(data)
            return f"{name}[{len(into)}]"
        try:
            if r.random() < 0.5 and str(int(data)) == data.decode() and abs(int(data)) < 2**53:
                return data.decode()
        except ValueError:
            pass
        return literal(data)

    def call(self, args):
        r = self.r
        how = r.choice(["redis.call", "redis.pcall"])
        if len(args) > 50:
            self.argv += args
            return f"{how}(unpack(ARGV, {len(self.argv) - len(args) + 1}, {len(self.argv)}))"
        words = [self.argument(arg) for arg in args]
        if r.random() < 0.01:
            words[r.randrange(len(words))] = r.choice(["nil", "{}", "true", "1.5", "1/0", "print", "function() end"])
        return f"{how}({', '.join(words)})"

    # --- statements

    def variable(self):
        self.count += 1
        return f"v{self.count}"

    def add(self, line):
        self.lines.append(line)

    def run_command(self):
        args, rule = self.command()
        call = self.call(args)
        name = self.variable()
        local = "local " if self.depth == 0 else ""
        if self.depth or self.r.random() < 0.2:
            self.add(f"{call}")
            return
        self.add(f"{local}{name} = {call}")
        if rule is compare.exact:
            self.known.append(name)
        self.returned.append((name, rule))

    def own_command(self):
        """A command of the script's own keys with an argument that it has computed."""
        r = self.r
        key = literal(own_key(r)[0])
        listed = literal(own_list(r)[0])
        how = r.choice(["redis.call", "redis.pcall"])
        self.add(
            r.choice(
                [
                    f"{how}('SET', {key}, S({self.value()}))",
                    f"{how}('APPEND', {key}, S({self.value()}))",
                    f"{how}('SET', {key}, N({self.value()}))",
                    f"{how}('INCRBY', {key}, N({self.value()}))",
                    f"{how}('INCRBYFLOAT', {key}, N({self.value()}) / 4)",
                    f"{how}('RPUSH', {listed}, S({self.value()}), N({self.value()}))",
                    f"{how}('LTRIM', {listed}, 0, 5)",
                    f"{how}('SET', {key}, {self.value()})",
                    f"{how}('DEL', {key}, {listed})",
                ]
            )
        )

    def condition(self):
        r = self.r
        v = self.value()
        return r.choice(
            [
                f"{v}",
                f"not {v}",
                f"type({v}) == 'table'",
                f"type({v}) == 'table' and {v}.err",
                f"N({v}) % 2 == 0",
                f"S({v}) < S({self.value()})",
                f"N({v}) > N({self.value()})",
            ]
        )

    def block(self, head, tail="end"):
        self.add(head)
        self.depth += 1
        for _ in range(self.r.randint(1, 2)):
            self.statement()
        self.depth -= 1
        self.add(tail)

    def statement(self):
        r = self.r
        kinds = [self.run_command, self.own_command, self.branch, self.loop, self.guard, self.fail, self.protocol, self.assign]
        r.choices(kinds, [10, 3, 1, 1, 1, 0.4, 0.3, 1] if self.depth < 2 else [10, 3, 0, 0, 0, 0.4, 0.3, 0])[0]()

    def branch(self):
        self.block(f"if {self.condition()} then", "else" if self.r.random() < 0.5 else "end")
        if self.lines[-1] == "else":
            self.lines.pop()
            self.block("else")

    def loop(self):
        head = self.r.choice(["for i = 1, 3 do", "for i, k in ipairs(KEYS) do", "for i = math.min(#ARGV, 3), 1, -1 do", "for w in ('a b c'):gmatch('%a') do"])
        self.block(head)

    def guard(self):
        """What fails inside is caught; its message is known."""
        name = self.variable()
        if self.depth == 0:
            self.add(f"local {name} = {{pcall(function()")
            self.known.append(name)
            self.returned.append((name, compare.exact))
            self.block("do")
            self.add(f"return {self.value()}")
            self.add("end)}")
        else:
            self.block("pcall(function()", "end)")

    def fail(self):
        r = self.r
        self.add(
            r.choice(
                [
                    "error('a failure')",
                    "error('a failure', 0)",
                    "error({err='CODE a failure'})",
                    "error(redis.error_reply('CODE a failure'))",
                    f"error(S({self.value()}))",
                    "local none = nil + 1",
                    "local none = nosuchglobal",
                    "nosuchglobal = 1",
                    "redis.nosuch()",
                    "redis.call()",
                    "redis.call({})",
                    f"assert({self.condition()}, 'an assertion')",
                    f"local none = {self.value()}.x.y",
                    f"local none = {self.value()} .. {self.value()}",
                    f"local none = {self.value()} + {self.value()}",
                ]
            )
            if r.random() < 0.7
            else f"if {self.condition()} then error('sometimes') end"
        )

    def protocol(self):
        self.add(f"redis.setresp({self.r.choice([2, 3, 3])})")

    def assign(self):
        if self.depth:
            return self.own_command()
        value = self.expression(2)
        name = self.variable()
        self.add(f"local {name} = {value}")
        self.known.append(name)
        self.returned.append((name, compare.exact))
        return None

    # --- expressions

    def scalar(self):
        r = self.r
        return r.choice(
            [
                str(r.randint(-5, 100)),
                f"{r.uniform(-10, 10):.3f}",
                r.choice(["2^53", "2^31", "-2^40", "1e15", "0.1", "1e17", "-0.5"]),
                literal(grammar.word(r)[0]),
                literal(grammar.integer(r)[0]),
                "true",
                "false",
                "nil",
                "#KEYS",
                "#ARGV",
                "KEYS[1]",
                "ARGV[1]",
            ]
        )

    def value(self):
        """Something that both servers must agree on."""
        if self.known and self.r.random() < 0.7:
            return self.r.choice(self.known)
        return f"({self.scalar()})"

    def expression(self, depth):
        r = self.r
        if depth == 0 or r.random() < 0.25:
            return self.value()
        more = lambda: self.expression(depth - 1)  # noqa: E731
        return r.choice(
            [
                lambda: "{" + ", ".join(more() for _ in range(r.randint(0, 4))) + "}",
                lambda: "{" + ", ".join(more() for _ in range(r.randint(0, 4))) + "}",
                lambda: f"{{ok={more()}}}",
                lambda: f"{{err={more()}}}",
                lambda: f"{{double=N({more()})}}",
                lambda: f"{{double={more()}}}",
                lambda: f"{{map={{[S({more()})]={more()}}}}}",
                lambda: f"{{set={{[S({more()})]=true}}}}",
                lambda: f"{{big_number=S({more()})}}",
                lambda: f"{{verbatim_string={{format='txt',string=S({more()})}}}}",
                lambda: f"redis.status_reply(S({more()}))",
                lambda: f"redis.error_reply(S({more()}))",
                lambda: f"D({more()})",
                lambda: f"S({more()}) .. S({more()})",
                lambda: f"N({more()}) + N({more()})",
                lambda: f"N({more()}) / 3",
                lambda: f"string.format('%d|%s|%5.2f', N({more()}), S({more()}), N({more()}))",
                lambda: f"redis.sha1hex(S({more()}))",
                lambda: f"S({more()}):upper():sub(1, 20)",
                lambda: f"{{S({more()}):byte(1, 5)}}",
                lambda: f"{{S({more()}):gsub('%w', '<%0>')}}",
                lambda: f"#S({more()})",
                lambda: f"tonumber(S({more()}))",
                lambda: f"{{select(2, {more()}, {more()}, {more()})}}",
                lambda: f"({self.condition()})",
                lambda: f"cjson.encode({{S({more()}), N({more()})}})",
            ]
        )()

    def ending(self):
        r = self.r
        if self.returned and r.random() < 0.5:
            chosen = [r.choice(self.returned) for _ in range(r.randint(1, 3))]
            for _, rule in chosen:
                self.rule = max(self.rule, rule, key=RULES.index)
            names = [name for name, _ in chosen]
            return f"return {names[0]}" if len(names) == 1 else f"return {{{', '.join(names)}}}"
        return f"return {self.expression(3)}"


def make(r, commands, length):
    """A script, its keys and other arguments, and the rule by which its replies are compared."""
    script = Script(r, commands)
    if r.random() < 0.3:
        script.keys += grammar.some(grammar.any_key, 1, 3)(r)
    for _ in range(length):
        script.statement()
    ending = script.ending()
    text = "\n".join([PRELUDE, *script.lines, ending])
    if r.random() < 0.03:
        at = r.randrange(len(PRELUDE), len(text))
        text = text[:at] + text[at + r.randint(1, 3) :]
        # Whatever is left: no order can be relied on.
        script.rule = max(script.rule, *(rule for _, rule in script.returned), compare.exact, key=RULES.index)
    return text.encode(), script.keys, script.argv, script.rule


def sha(text):
    return hashlib.sha1(text).hexdigest().encode()


# --- Lua's own functions

# What addresses it shows is hidden, and what lies deep.
SHOW = """local D
D = function(x, n)
if type(x) ~= 'table' then return type(x) .. ':' .. (tostring(x):gsub('0x%x+', 'ADDRESS')) end
if n == 0 then return 'deep' end
local t = {}
for k, v in pairs(x) do t[#t + 1] = D(k, n - 1) .. '=' .. D(v, n - 1) end
table.sort(t)
return '{' .. table.concat(t, ',') .. '}'
end
local out = {}
local function T(f, ...) out[#out + 1] = D({pcall(f, ...)}, 3) end
local object = setmetatable({}, {__index = function(t, k) return k end, __call = function(t, x) return x end,
__tostring = function() return 'object' end, __eq = function() return true end, __lt = function() return true end,
__concat = function(a, b) return 'joined' end, __add = function() return 7 end, __len = function() return 9 end})"""

FUNCTIONS = [
    *(f"string.{name}" for name in "byte char find format gmatch gsub len lower match reverse sub upper rep gfind".split()),
    *(f"table.{name}" for name in "concat foreach foreachi getn insert maxn remove sort setn".split()),
    *(
        f"math.{name}"
        for name in "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp ldexp log log10 max min mod modf pow rad sin sinh sqrt tan tanh".split()
    ),
    *"assert error getmetatable ipairs next pairs pcall rawequal rawget rawset select setmetatable tonumber tostring type unpack xpcall loadstring".split(),
    *(f"redis.{name}" for name in "call pcall error_reply status_reply sha1hex log setresp set_repl replicate_commands breakpoint debug acl_check_cmd".split()),
    *(f"bit.{name}" for name in "arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex".split()),
    *"cjson.encode cjson.decode cmsgpack.pack cmsgpack.unpack struct.pack struct.size struct.unpack".split(),
    *"coroutine.create coroutine.resume coroutine.wrap coroutine.status coroutine.yield".split(),
]

VALUES = [
    *"0 1 2 3 -1 -2 5 10 0.5 -1.5 255 256 65 100 1e15 2^31 -2^31 2^53 1/0 -1/0 0/0".split(),
    *"nil nil true false {} {1,2,3} {3,1,2} {'b','a'} {1,nil,3} {a=1} {{1},{2}} {1,'x',true} object KEYS ARGV".split(),
    *"'' 'a' 'abc' 'hello world' '10' '0x10' '1e2' ' 5 ' 'nan' '%d' '%s' '%5.2f|%s' '%a+' '(%w)(%w)' '.' '[a-c]' '^%s*' '%' '[' '(()' '%b()' '%f[%w]' 'k1'".split(" "),
    *["'\\0\\255'", "'a\\0b'", "'return 1'", "'x x'", "'>I4'", "'<hsb'", "'[1,{\"a\":null}]'", "'\\147\\1\\2\\3'", "'GET'", "'SET'"],
    *"redis string math _G print_ cjson.null".replace("print_ ", "").split(),
]
CALLABLES = [
    "function(...) return ... end",
    "function(a, b) return a < b end",
    "function(a, b) return tostring(a) > tostring(b) end",
    "function() error('inside') end",
    "function() error({err='X inside'}) end",
    "function(x) return redis.call('get', x) end",
    "function() return nosuch end",
    "tostring",
    "type",
    "string.upper",
    "coroutine.create(function(a) return coroutine.yield(a) end)",
]
# What takes a count would take for ever with a large one.
COUNTED = {"string.rep", "table.insert", "unpack", "table.concat", "string.format"}
# What writes a table's fields in the order that they happen to have.
ORDERED = {"cmsgpack.pack", "cjson.encode"}


def library(r, calls=12):
    """A script of calls of Lua's and Redis' functions with arguments of all kinds, and the errors that they make."""
    lines = []
    for _ in range(calls):
        name = r.choice(FUNCTIONS)
        args = [r.choice(CALLABLES) if r.random() < 0.12 else r.choice(VALUES) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 3, 3, 4]))]
        if name in COUNTED:
            args = [a if a not in ("1e15", "2^31", "-2^31", "2^53", "1/0", "-1/0", "0/0") else "7" for a in args]
        if name in ORDERED:
            args = [a if a not in ("_G", "redis", "string", "math") else "{}" for a in args]
        kind = r.random()
        if kind < 0.85:
            lines.append(f"T({', '.join([name, *args])})")
        elif kind < 0.95:
            lines.append(f"T(function() return {name}({', '.join(args)}) end)")
        else:
            lines.append(f"T(function() local v = {name} v = v({', '.join(args)}) return {r.choice(['#v', '-v', 'v.x.y', 'v + 1', 'v .. 1', 'v < 1', 'v()', 'v[1][2]'])} end)")
    return "\n".join([SHOW, *lines, "return out"]).encode()
