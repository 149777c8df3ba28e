"""The audit: many kernels that somebody has on disk, judged one by one and counted.

``corpus`` is what an adapter makes of a folder, ``pack`` carries it in one file, ``pool`` judges it
with several warm verifiers, ``results`` keeps one line a kernel, ``summary`` counts and ``render``
writes the counts down. No web framework and, outside of the verifiers themselves, no torch.
"""
