"""The four experiments: what each measures in one repetition. Must not know how repetitions are spread and stored."""
