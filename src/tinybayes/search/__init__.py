"""Many trainings, one question: random sweeps as in the papers, with a store that can be taken up again."""
