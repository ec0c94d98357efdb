"""`glassgrad playground`: a page on this machine that shows what a program computes while it is written.

In: the text of a program. Out: events, as the page reads them: what it prints, its values and gradients, and what else
the library knows of its result. The page is in `page/`, built from `web/src/playground`.

| question | file |
|---|---|
| What may be asked for? | `server.py`; who may ask, `base/local_server.py` |
| How are processes started, limited and replaced? | `runner.py`; the limits, `lessons/limits.py` |
| What goes between the server and a process? | `events.py` |
| What does a process do? | `child.py` |
| How is the text compiled, and which value is its result? | `program.py` |
| How is a training loop shown, paused and stepped? | `loop.py` |
| How do a program's ops become a function? | `explanation/recording.py`, `explanation/replay.py` |
| What does a pane show? | `panes.py`; kernels come from `compile/view/linked.py`, arrays from `report/page/maps.py` |
| Which examples, lessons and exercises are there? | `gallery.py`, and the programs in `examples/` |
| How is a program saved? | `saving.py` |
| Who completes names? | `completing.py` |
"""
