"""The pure core: what a turn is and what may happen to it.

Standard library values only. Nothing here reads a clock, draws a random number or does I/O;
the shell (`app.runner`) brings news in and carries wishes out.
"""
