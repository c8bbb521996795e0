"""`python -m benchmarks.guarantees [problem ...]`."""

from .command import main

if __name__ == "__main__":
    main()
