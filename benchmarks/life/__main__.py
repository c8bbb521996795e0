"""`python -m benchmarks.life a|b|c|d|e|all`."""

from .command import main

if __name__ == "__main__":
    main()
