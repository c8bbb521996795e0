"""The experiments: what each measures in one repetition. Must not know how repetitions are run and stored."""
