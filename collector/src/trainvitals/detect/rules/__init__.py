"""Rules of the user's own, in alerts.yml: conditions over what training, GPUs and host tell.

rules:
  - {name: Hot loss, when: loss > 2 * target and step > 500, for: 5 steps, severity: page, message: "{loss:.2f}!"}

A file is read (reading), each condition parsed (tokens, grammar) into functions within functions (closures), and asked
of each line (rules): nothing in it is ever run as Python.
"""
