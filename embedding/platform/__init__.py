"""Running the whole platform on one machine: services, supervisor, demo."""
