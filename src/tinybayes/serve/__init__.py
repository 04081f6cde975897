"""A small local app: the report page, live while a search runs, and questions to its models."""
