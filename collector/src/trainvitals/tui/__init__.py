"""The dashboard in the terminal: one picture in, lines out. Textual, the extra `tui`, is imported where it is drawn."""
