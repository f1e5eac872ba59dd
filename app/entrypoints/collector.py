"""The collector of cycles, whose defaults are made for small programs.

By them every 700 new objects are looked through, and all of a process again and again: with a
thousand readers that stopped everybody for 0.3 s each time and took a third of the CPU time (ADR
0036). Nearly all that a turn leaves behind ends without it, when nobody refers to it any more.
"""

import gc

_YOUNG_OBJECTS = 50_000
"""New ones beyond those that have gone by themselves, before a look; each takes milliseconds."""


def collect_seldom() -> None:
    """From now on cycles are looked for seldom, and never in what is there already.

    To be called when a process is ready: what has been built by then stays to its end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
