"""The journal: files of JSON lines that the training process and the agent append to and everyone reads.

Nothing outside this package knows the format. `record` makes and reads lines, `append` writes them,
`tail` follows files, `layout` names them, `runs` claims and watches them, `retention` keeps them small.
"""
