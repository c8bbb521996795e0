"""``python -m metricwise`` is the ``metricwise`` command."""

from .cli import main

if __name__ == "__main__":
    main()
