"""Preparing a block, training on it, pushing it; learning again what is remembered."""
