"""What the cells of a page show: the value of every expression, and not of the last one alone.

The kernel that runs a page calls `install`. Where a cell has one expression, its value stands
below the cell, as in any notebook. Where it has several, each value follows its expression. What
would not help a reader is left out: None, pictures and other objects of matplotlib, estimators that
have just been fitted, calls of `print`, and values that a comment behind the expression has.
"""

import ast
import io
import pprint
import tokenize
from types import ModuleType

import numpy as np
from sklearn.base import BaseEstimator

FUNCTION = "_show_value"  # in the namespace of a page
WIDTH = 90  # columns
OPTIONS = {"threshold": 60, "linewidth": WIDTH - 4, "precision": 3, "suppress": True}


def show_value(source, value, owner=None):
    """Print an expression and its value, in one line if there is room.

    The owner is the object whose method was called, if there is one.
    """
    if not is_shown(value) or is_of_matplotlib(owner):
        return
    with np.printoptions(**OPTIONS):
        text = pprint.pformat(value, width=WIDTH - 4, compact=True, sort_dicts=False)
    if "\n" in text or len(source) + len(text) + 2 > WIDTH:
        indented = text.replace("\n", "\n    ")
        print(f"{source}:\n    {indented}")
    else:
        print(f"{source}: {text}")


def is_shown(value):
    """Return whether a value helps a reader."""
    parts = value if isinstance(value, list | tuple) and value else [value]
    return value is not None and not any(
        isinstance(part, BaseEstimator) or is_of_matplotlib(part) for part in parts
    )


def is_of_matplotlib(thing):
    """Return whether something is an object or a module of matplotlib."""
    is_module = isinstance(thing, ModuleType)
    name = thing.__name__ if is_module else type(thing).__module__
    return name.split(".")[0] == "matplotlib"


def lines_with_values(code):
    """Return the numbers of the lines whose comment is a value."""
    found = set()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            try:
                ast.literal_eval(token.string.lstrip("# "))
            except (ValueError, SyntaxError):
                continue
            found.add(token.start[0])
    return found


def wrap_expressions(tree, code):
    """Let each expression of a cell print its value, if there are several."""
    expressions = [node for node in tree.body if isinstance(node, ast.Expr)]
    expressions = [node for node in expressions if not is_print(node.value)]
    if len(expressions) > 1:
        known = lines_with_values(code)
        for node in expressions:
            if node.end_lineno in known:
                continue
            source = ast.Constant(ast.get_source_segment(code, node.value))
            name = ast.Name(FUNCTION, ast.Load())
            owner = owner_of(node.value)
            node.value = ast.Call(name, [source, node.value, owner], [])
    return ast.fix_missing_locations(tree)


def owner_of(expression):
    """Return the expression `x` or `x[i]` of a call `x.method()`, otherwise None."""
    called = getattr(expression, "func", None)
    owner = getattr(called, "value", None)
    inner = owner.value if isinstance(owner, ast.Subscript) else owner
    return owner if isinstance(inner, ast.Name) else ast.Constant(None)


def is_print(expression):
    return isinstance(expression, ast.Call) and ast.unparse(expression.func) == "print"


def install(shell):
    """Let a kernel show the values of the cells that follow."""
    code = ""

    def remember(info):
        nonlocal code
        code = shell.input_transformer_manager.transform_cell(info.raw_cell)

    class Transformer(ast.NodeTransformer):
        def visit(self, tree):
            return wrap_expressions(tree, code)

    shell.events.register("pre_run_cell", remember)
    shell.ast_transformers.append(Transformer())
    shell.user_ns[FUNCTION] = show_value
    np.set_printoptions(threshold=OPTIONS["threshold"])
