"""Models of whole words, of text and of points: they learn, compiled or not, interrupted or not, as in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glassgrad.data import Examples, WordList
from glassgrad.data.names import IGNORED
from glassgrad.data.text import TextData
from glassgrad.tasks.names import NAMES, NamesTask
from glassgrad.tasks.plane import MOONS, XOR
from glassgrad.tasks.task import TaskKind
from glassgrad.tasks.text import TEXT, TextTask
from glassgrad.train.config import command_line
from glassgrad.train.learners.learner import measure
from tests.tasks.stopping import check_stopping
from tests.thinning import covering

pytestmark = pytest.mark.usefixtures("numpy_target")  # test_engines.py trains in native code

NAMES_TEXT = "anna bert carla dora emil fritz gerd hanna ida jonas karl lena mona nora otto paula quirin rosa"
WORDS = WordList(tuple(NAMES_TEXT.split()), "test")
Make = Callable[..., Any]


def names(model: str) -> Make:
    def make(**options: Any) -> NamesTask:
        size = {"embedding": 12} | ({"heads": 2, "layers": 1} if model == "gpt" else {"hidden": 12})
        given = {"model": model, "steps": 60, "batch": 8, "rate": 0.01, "dropout": 0.0, **size, **options}
        return NamesTask(NAMES.configure([command_line(given)]), WORDS)

    return make


@pytest.fixture(scope="module")
def text_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    words = np.random.default_rng(0).choice(["the", "cat", "sat", "on", "a", "mat", "and", "ate", "rat"], 600)
    file.write_text(" ".join(words))
    return file


def text(file: Path) -> Make:
    def make(**options: Any) -> TextTask:
        small = {"context": 16, "width": 16, "layers": 2, "heads": 2, "steps": 60, "rate": 0.01}
        config = TEXT.configure([command_line({"data": str(file), **small, **options})])
        return TextTask(config, TextData.read(file, config.context))

    return make


def plane(kind: TaskKind) -> Make:
    def make(**options: Any) -> Any:
        return kind.build(kind.configure([command_line({"steps": 60, "points": 40, **options})]))

    return make


MODELS = ("rnn", "lstm", "gru", "gpt", "text", "xor", "moons")
WITH_DROPOUT = MODELS[:5]
KINDS = {"text": TEXT, "xor": XOR, "moons": MOONS}


@pytest.fixture
def make(request: pytest.FixtureRequest, text_file: Path) -> Make:
    name = request.param
    return text(text_file) if name == "text" else plane(KINDS[name]) if name in KINDS else names(name)


def losses(task: Any, begin: int, end: int) -> list[float]:
    found = []
    for step in range(begin, end):
        task.learner.set_rate(task.rate_at(step))
        found.append(float(task.learner.step(*task.batch_at(step))))
    return found


@pytest.mark.parametrize("make", MODELS, indirect=True)
def test_the_loss_falls_and_compiled_steps_are_the_eager_ones(make: Make) -> None:
    eager, compiled = make(engine="eager"), make(engine="compiled")
    for name, array in eager.learner.weights().items():
        np.testing.assert_array_equal(compiled.learner.weights()[name], array, err_msg=name)
    before = eager.settle()["train_loss"]
    expected = losses(eager, 0, 40)
    assert np.mean(expected[-5:]) < 0.9 * np.mean(expected[:5])
    assert eager.settle()["train_loss"] < before
    np.testing.assert_allclose(losses(compiled, 0, 40), expected, atol=2e-4)
    assert compiled.settle() == pytest.approx(eager.settle(), abs=1e-3)


@pytest.mark.parametrize("options", [{}, {"clip": 0.0}, {"dropout": 0.2}], ids=str)
def test_a_compiled_step_is_traced_once(options: dict[str, Any]) -> None:
    task = names("rnn")(engine="compiled", **options)
    began = losses(task, 0, 1)
    programs = [task.learner._whole] if hasattr(task.learner, "_whole") else []
    assert np.isfinite(began + losses(task, 1, 8)).all()
    assert [program.traces for program in programs] == ([] if options.get("clip") == 0.0 else [1])


@pytest.mark.parametrize("make", ("xor", "moons"), indirect=True)
def test_points_by_hand_are_the_same(make: Make) -> None:
    eager, manual = make(engine="eager"), make(engine="manual")
    np.testing.assert_allclose(losses(manual, 0, 40), losses(eager, 0, 40), atol=1e-4)


@pytest.mark.parametrize("make", WITH_DROPOUT, indirect=True)
def test_dropout_makes_a_difference_and_begins_with_the_seed(make: Make) -> None:
    engines = ("eager", "eager", "compiled")
    runs = [losses(make(engine=engine, dropout=0.3), 0, 6) for engine in engines]
    assert runs[0] == runs[1]
    np.testing.assert_allclose(runs[2], runs[0], atol=1e-4)
    assert losses(make(engine="eager", dropout=0.0), 0, 6) != runs[0]


@pytest.mark.parametrize(("name", "engine"), covering(MODELS, ("eager", "compiled")))
def test_a_run_that_was_stopped_ends_bit_for_bit_like_one_that_was_not(
    name: str, engine: str, text_file: Path, tmp_path: Path
) -> None:
    make = text(text_file) if name == "text" else plane(KINDS[name]) if name in KINDS else names(name)
    options = {"dropout": 0.3} if name in WITH_DROPOUT else {}
    check_stopping(lambda: make(engine=engine, **options), tmp_path, (7, 31))


def test_forty_steps_of_the_lstm_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
    ours = names("lstm")(dropout=0.0, engine="eager", clip=0.5)
    tokens = ours.data.tokenizer.size
    twin = torch.nn.ModuleDict(
        {
            "embedding": torch.nn.Embedding(tokens, 12),
            "network": torch.nn.LSTM(12, 12, batch_first=True),
            "output": torch.nn.Linear(12, tokens),
        }
    )
    twin.load_state_dict({name: torch.tensor(np.array(array)) for name, array in ours.learner.weights().items()})
    optimizer = torch.optim.AdamW(twin.parameters(), weight_decay=0.01)
    for step in range(40):
        inputs, targets = ours.batch_at(step)
        optimizer.param_groups[0]["lr"] = ours.rate_at(step)
        ours.learner.set_rate(ours.rate_at(step))
        logits = twin["output"](twin["network"](twin["embedding"](torch.tensor(inputs)))[0])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(targets).flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        optimizer.step()
        assert float(ours.learner.step(inputs, targets)) == pytest.approx(float(loss.detach()), abs=2e-4)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_the_loss_of_sequences_is_over_the_places_that_count(chunk: int) -> None:
    generator = np.random.default_rng(0)
    logits = generator.standard_normal((7, 5, 4))
    targets = generator.integers(4, size=(7, 5))
    targets[generator.random((7, 5)) < 0.4] = IGNORED
    rows = np.arange(7)
    found = measure(lambda part: logits[part], Examples(rows, targets), chunk)
    expected, right = [], []
    for row, place in zip(*np.nonzero(targets != IGNORED), strict=True):
        shares = np.exp(logits[row, place]) / np.exp(logits[row, place]).sum()
        expected.append(-np.log(shares[targets[row, place]]))
        right.append(shares.argmax() == targets[row, place])
    assert found.loss == pytest.approx(np.mean(expected))
    assert found.accuracy == pytest.approx(np.mean(right))


def test_the_schedule_rises_and_falls_smoothly() -> None:
    task = names("gru")(steps=100, rate=0.01, final_rate=0.001, warm_up=0.1)
    rates = np.array([task.rate_at(step) for step in range(100)])
    assert rates.argmax() == 10
    assert rates.max() == pytest.approx(0.01)
    assert (np.diff(rates[:11]) > 0).all()
    assert (np.diff(rates[10:]) < 0).all()
    assert rates[-1] == pytest.approx(0.001, rel=0.01)


def test_the_decision_boundary_is_where_the_model_changes_its_mind(tmp_path: Path) -> None:
    from glassgrad.tasks.boundary_picture import draw_boundary

    task = plane(XOR)(steps=300, points=200, engine="manual")
    losses(task, 0, 300)
    corners = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    assert (task.probability(corners) > 0.5).tolist() == [False, True, True, False]
    seen = []

    def watched(points: Any) -> Any:
        seen.append(points)
        return task.probability(points)

    draw_boundary(tmp_path / "boundary.png", watched, task.data, "xor")
    assert (tmp_path / "boundary.png").read_bytes().startswith(b"\x89PNG")
    drawn = np.concatenate(seen)
    for points in (task.data.train_points, task.data.test_points):
        assert (drawn.min(axis=0) < points.min(axis=0)).all()
        assert (drawn.max(axis=0) > points.max(axis=0)).all()
