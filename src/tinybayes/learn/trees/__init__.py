"""Learning decision trees, forests and boosted trees."""
