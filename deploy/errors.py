"""What ends a command with a line that says what is wrong and what mends it."""


class DeployError(Exception):
    pass


class FileToEdit(Exception):
    """Nothing is wrong: it is the user's turn."""
