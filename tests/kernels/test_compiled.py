"""The compiled kernels decide and count as the NumPy kernels do: the comparisons are in `twins`, for fuzzing too."""

from kernels.twins import *  # noqa: F403  # the tests that it defines
