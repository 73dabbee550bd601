"""Contract tests of the ports: one suite per port, run over every adapter."""
