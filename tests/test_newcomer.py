"""What a newcomer does first: every task of newcomer_tasks.py works as it is written there."""

import ast
import inspect

import newcomer_tasks
import pytest
from newcomer_tasks import TASKS
from refusals import raises_naming

LONGEST = 17  # statements of a task, its definition and its docstring among them


# What other tests do as well, on other data, and what takes half a second or more.
SLOW = {
    "choose_the_number_by_features",
    "draw_fits",
    "fit_to_a_part_of_many_samples",
    "know_some_labels",
    "predict_new_samples",
    "save_and_load",
    "sweep_the_number_of_programs",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in SLOW else ()) for n in TASKS],
)
def test_a_newcomer_can(name):
    try:
        TASKS[name]()
    except ImportError as error:
        wanted = newcomer_tasks.lacking(error)
        if wanted is None:
            raise
        pytest.skip(f"{wanted} is not installed")


def test_there_are_twenty_short_tasks_that_stand_alone():
    assert len(TASKS) == 20
    assert TASKS.keys() >= SLOW
    shared = set(vars(newcomer_tasks)) & set(
        newcomer_tasks.main.__code__.co_names
    ) | set(TASKS)
    for name, task in TASKS.items():
        source = inspect.getsource(task)
        [tree] = ast.parse(source).body
        nodes = ast.walk(ast.parse(source))
        assert sum(isinstance(node, ast.stmt) for node in nodes) <= LONGEST, name
        assert len(ast.get_docstring(tree).splitlines()) == 1, name
        assert any(isinstance(node, ast.Assert) for node in ast.walk(tree)), name
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert not names & shared, name


def test_the_script_says_how_each_task_went(capsys, monkeypatch):
    def broken():
        raise ValueError("no clusters")

    def wanting():
        raise ModuleNotFoundError("No module named 'anndata'", name="anndata")

    def misspelt():
        raise ModuleNotFoundError("No module named 'nmfclusters'", name="nmfclusters")

    for task in (broken, wanting, misspelt):
        monkeypatch.setitem(TASKS, task.__name__, task)
    assert newcomer_tasks.main(["name_pairs_by_rows", "wanting"]) == 0
    assert newcomer_tasks.main(["broken", "misspelt"]) == 2
    done, left_out, *failed = capsys.readouterr().out.splitlines()
    assert done.endswith("done")
    assert left_out.endswith("left out: anndata is not installed")
    assert failed[0].endswith("FAILED: ValueError: no clusters")
    assert failed[1].endswith(
        "FAILED: ModuleNotFoundError: No module named 'nmfclusters'"
    )
    with raises_naming(SystemExit, "'fly'", "scale_in_a_pipeline"):
        newcomer_tasks.main(["fly"])
