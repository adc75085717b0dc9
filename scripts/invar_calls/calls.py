"""Lists the calls in a Python file that start an engine, without running it.

Reads the file from standard input and prints one JSON object: the calls with
their literal arguments as flags of `vllm serve`, the commands that it starts
as processes, and the environment variables that it sets to literals before them.
"""

from __future__ import annotations

import ast
import contextlib
import json
import sys
from typing import Any

ENGINES = {"LLM", "EngineArgs", "AsyncEngineArgs", "Engine", "LLMEngine", "AsyncLLMEngine"}
STARTS = {"run", "Popen", "call", "check_call", "check_output", "system", "create_subprocess_exec"}
ENVIRON = {"os.environ", "environ"}


class Unknown(Exception):
    """A value that is known when the program runs only."""


def literal(node: ast.expr, names: dict[str, Any]) -> Any:
    """Evaluates a literal, or a name that holds one."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dict"
        and not node.args
    ):
        return {k.arg: literal(k.value, names) for k in node.keywords if k.arg}
    if isinstance(node, ast.Dict):
        return {
            literal(k, names): literal(v, names)
            for k, v in zip(node.keys, node.values, strict=True)
            if k
        }
    try:
        return ast.literal_eval(node)
    except ValueError as error:
        raise Unknown(ast.unparse(node)) from error


def flag(name: str, value: Any) -> list[str]:
    """Writes an argument of LLM as the flag of `vllm serve` that means the same."""
    option = "--" + name.replace("_", "-")
    if value is True:
        return [option]
    if value is False:
        return ["--no-" + name.replace("_", "-")]
    if value is None:
        return []
    return [option, value if isinstance(value, str) else json.dumps(value)]


def called(node: ast.Call, aliases: dict[str, str]) -> str:
    """Names what is called, the engine of LLM.from_engine_args(...) included."""
    func = node.func
    while isinstance(func, ast.Attribute):
        if func.attr in ENGINES:
            return func.attr
        func = func.value
    return aliases.get(func.id, func.id) if isinstance(func, ast.Name) else ""


def command(node: ast.Call, names: dict[str, Any]) -> list[str] | str | None:
    """Reads the command of subprocess.run([...]) or os.system("..."); open words are ""."""
    func = node.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name not in STARTS or not node.args:
        return None
    first = node.args[0]
    if name == "create_subprocess_exec":
        first = ast.List(elts=list(node.args), ctx=ast.Load())
    if isinstance(first, ast.List):
        words = []
        for item in first.elts:
            try:
                words.append(str(literal(item, names)))
            except Unknown:
                words.append("")
        return words
    try:
        value = literal(first, names)
    except Unknown:
        return None
    if isinstance(value, list):
        return [str(word) for word in value]
    return value if isinstance(value, str) else None


class Visitor(ast.NodeVisitor):
    """Collects names with literals, environment variables and engine calls in order."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.aliases: dict[str, str] = {}
        self.env: dict[str, str] = {}
        self.calls: list[dict[str, Any]] = []

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Remembers `from vllm import LLM as Name`."""
        for name in node.names:
            if name.name in ENGINES and name.asname:
                self.aliases[name.asname] = name.name

    def visit_Assign(self, node: ast.Assign) -> None:
        """Remembers NAME = literal and os.environ[NAME] = literal."""
        try:
            value = literal(node.value, self.names)
        except Unknown:
            value = None
        for target in node.targets:
            if isinstance(target, ast.Name) and value is not None:
                self.names[target.id] = value
            if isinstance(target, ast.Subscript) and ast.unparse(target.value) in ENVIRON:
                with contextlib.suppress(Unknown):
                    self.env[str(literal(target.slice, self.names))] = str(value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Remembers what sets the environment and what starts an engine."""
        text = ast.unparse(node.func)
        if (
            text in {"os.environ.setdefault", "os.putenv", "environ.setdefault"}
            and len(node.args) == 2
        ):
            with contextlib.suppress(Unknown):
                name, value = (literal(a, self.names) for a in node.args)
                self.env[str(name)] = str(value)
        if text in {"os.environ.update", "environ.update"}:
            self.update(node)
        if called(node, self.aliases) in ENGINES:
            self.calls.append(self.engine(node))
        elif (started := command(node, self.names)) is not None:
            shown = {"line": node.lineno, "args": [], "env": dict(self.env), "problems": []}
            key = "script" if isinstance(started, str) else "command"
            self.calls.append({**shown, key: started})
        self.generic_visit(node)

    def update(self, node: ast.Call) -> None:
        """Remembers os.environ.update({...}) and os.environ.update(NAME=...)."""
        for part in [*node.args, *(k.value for k in node.keywords if k.arg is None)]:
            with contextlib.suppress(Unknown):
                got = literal(part, self.names)
                if isinstance(got, dict):
                    self.env.update({str(k): str(v) for k, v in got.items()})
        for keyword in node.keywords:
            if keyword.arg:
                with contextlib.suppress(Unknown):
                    self.env[keyword.arg] = str(literal(keyword.value, self.names))

    def engine(self, node: ast.Call) -> dict[str, Any]:
        """Turns one call into flags; what is no literal becomes a problem."""
        args: list[str] = []
        problems: list[str] = []
        pairs: list[tuple[str, ast.expr]] = [(k.arg or "**", k.value) for k in node.keywords]
        if node.args:
            pairs.insert(0, ("model", node.args[0]))
        for name, value in pairs:
            try:
                got = literal(value, self.names)
            except Unknown as unknown:
                problems.append(
                    f"the value of {name} is known when the program runs only: {unknown}"
                )
                continue
            if name == "**" and isinstance(got, dict):
                for key, inner in got.items():
                    args += flag(str(key), inner)
            else:
                args += flag(name, got)
        return {"line": node.lineno, "args": args, "env": dict(self.env), "problems": problems}


def main() -> None:
    """Reads the file and prints the answer."""
    try:
        tree = ast.parse(sys.stdin.read())
    except SyntaxError as error:
        print(json.dumps({"error": f"line {error.lineno}: {error.msg}", "calls": []}))
        return
    visitor = Visitor()
    visitor.visit(tree)
    print(json.dumps({"error": "", "calls": visitor.calls}))


main()
