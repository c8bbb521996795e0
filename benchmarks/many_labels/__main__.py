"""`python -m benchmarks.many_labels data|value|speed|memory|growth|all|tables`."""

from .run import main

if __name__ == "__main__":
    main()
