"""`python -m benchmarks.training run|predictions|values|times|report`."""

from .command import main

if __name__ == "__main__":
    main()
