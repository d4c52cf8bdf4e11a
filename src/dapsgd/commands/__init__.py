"""What the commands ``dapsgd fit`` and ``dapsgd predict`` do; how they are called is declared in ``cli.py``."""
