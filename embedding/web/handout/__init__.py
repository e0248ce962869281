"""The report of a window to hand on: one content, written as HTML, PDF or slides."""
