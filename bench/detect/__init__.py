"""How right the detectors are: precision, recall and delay over labelled recordings and real traces."""
