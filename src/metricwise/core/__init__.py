"""What every layer shares: rows in memory, losses, confusion tensors, samples, messages, files, progress.

Owns values and small tools without an opinion about metrics or rules. Must import nothing but kernels.
"""
