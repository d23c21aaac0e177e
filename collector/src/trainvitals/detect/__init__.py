"""What is wrong with a run, a GPU or a machine, said within a second of when it happened.

Detectors are small pure objects: `update(what is new)` gives a Finding while its condition holds, else None. The book
opens findings, keeps them and closes them; the engine hands each record to the detectors that it concerns.
"""
