"""What monitoring costs, measured beside other tools in one run; `python -m bench` writes docs/benchmarks.md.

One file for each kind of measure. Each gives rows of the table; stage.py has the processes they measure.
"""
