"""What a watch leaves as it is beside the training: programs that are compiled meanwhile, and the engine's mode."""

from __future__ import annotations

import glassgrad as gg
from glassgrad import nn, optim
from glassgrad.doctor import watch
from glassgrad.engine.mode import MODE, WATCHED


def test_a_layer_compiled_between_a_watched_forward_and_its_backward_stays_one_loop() -> None:
    gg.manual_seed(0)
    model, layer = nn.Linear(3, 2), nn.LSTM(3, 4)
    seen = watch(model, optim.SGD(model.parameters(), lr=0.1))
    compiled = gg.compile(lambda x: layer(x)[0].sum(), backend="numpy", strict=True)
    with seen:
        loss = model(gg.randn(8, 3)).square().mean()
        assert MODE.watchers
        compiled(gg.randn(5, 2, 3))
        loss.backward()
    assert "lstm_scan(" in compiled.source
    gg.ones(2) + 1
    assert not MODE.watchers
    assert not MODE.flags & WATCHED
