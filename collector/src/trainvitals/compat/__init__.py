"""The names and signatures of other tools over ours: existing training code runs after its import is changed.

    from trainvitals.compat.performance import TrainingMonitor
Each module stands for one tool; docs/compat.md says what does what, and what differs.
"""
