"""What is wrong with a rule, and where: in its expression as it is parsed, in the file as the user reads it."""

from trainvitals.errors import TrainVitalsError


class ExpressionError(Exception):
    """`at` counts characters from the expression's beginning."""

    def __init__(self, at: int, problem: str, fix: str = "") -> None:
        super().__init__(f"{problem}: {fix}" if fix else problem)
        self.at, self.problem, self.fix = at, problem, fix


class RuleError(TrainVitalsError):
    """alerts.yml:3:17: a value is wanted here: write a name or a number
        when: loss >
                    ^
    Line and column count from 1; line 0 is the file as a whole."""

    def __init__(self, file: str, line: int, column: int, problem: str, source: str = "") -> None:
        shown = f"\n    {source}\n    {' ' * (column - 1)}^" if source else ""
        place = f"{file}:{line}:{column}" if line else file
        super().__init__(f"{place}: {problem}{shown}")
        self.line, self.column, self.problem = line, column, problem
