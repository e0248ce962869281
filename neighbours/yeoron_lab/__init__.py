"""The laboratory: mechanisms of papers that few trainings choose (docs/adr/0043-laboratory.md).

Each is plugged in by an entry point and reaches the core through its registries.
"""
