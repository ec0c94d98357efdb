"""The native emitter: loop nests, matrix products and windows as LLVM IR, compiled for this machine."""
