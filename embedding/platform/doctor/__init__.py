"""`yeoron doctor`: tries what a new operator could have wrong, and says what to do."""
