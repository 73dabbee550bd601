"""The threads of native libraries. It imports nothing, because every command starts with it."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Variables for numpy and torch, to be set before these are imported. Threads of OpenBLAS are not used. Those of torch,
which reads the second variable, take three times as long on a busy machine."""
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
"""For glibc: with an arena for each thread, freed memory is kept in each, 28 MB in the process of an index."""
