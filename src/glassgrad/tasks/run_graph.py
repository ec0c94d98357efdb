"""The graph of a step of a run made by `glassgrad train`, rebuilt from its directory."""

from __future__ import annotations

from pathlib import Path

from glassgrad import errors
from glassgrad.tasks import task_kinds
from glassgrad.tasks.task import with_data_in
from glassgrad.train.config import read_toml
from glassgrad.train.kept.rundir import RunDirectory
from glassgrad.train.loop import Loop
from glassgrad.train.show.run_data import read_config
from glassgrad.train.show.run_graph import write_graph


def rebuild_graph(path: Path) -> Path:
    """Write the graph of the step after the last checkpoint of a run, with the data and weights of that step.

    Raises:
        errors.InputError: the run is not of a task, or is by hand, or its checkpoint or data are missing or damaged.
    """
    run = RunDirectory.existing(path)
    name = read_config(path)[0].get("task")
    kind = next((kind for kind in task_kinds() if kind.name == name), None)
    if kind is None:
        raise errors.GRAPH_OF_NO_TASK(run=path)
    task = kind.build(kind.configure([with_data_in(read_toml(run.config, kind.config, kind.name), run.path)]))
    loop = Loop(task)
    loop.read(run)
    step = min(loop.step, task.steps - 1)
    task.set_rate(task.rate_at(step))
    return write_graph(path, task.learner, task.batch_at(step))
