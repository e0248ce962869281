"""Coordinated L-BFGS on what the nodes remember (Sandblaster, Dean 2012, section 4.2)."""
