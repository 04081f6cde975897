"""``python -m tinybayes`` is the command line."""

from tinybayes.cli import main

main()
