"""Yeoron (여론): see public opinion move in text."""

__version__ = "0.1.0"
