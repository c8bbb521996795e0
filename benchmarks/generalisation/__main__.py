"""`python -m benchmarks.generalisation run|probabilities|rules|report`."""

from .command import main

if __name__ == "__main__":
    main()
