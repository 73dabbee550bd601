"""Malformed inputs: `make fuzz N=1000000`.

Valid inputs (`corpus`) are damaged at random (`mutations`) and given to everything that reads bytes or texts of others
(`targets`). Allowed are a right answer and an error of Recallog. Anything else is a finding: another error, a record
that is lost, more than two seconds of CPU, or too much memory.

Inputs come in blocks. A block is repeated by its seed alone: `make fuzz BLOCK=<seed>:<number>` does it, and what is
printed for each finding. The inputs of a finding are saved to `build/fuzz`.
"""
