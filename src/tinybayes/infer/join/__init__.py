"""Join trees: exact answers from dense tables, where no circuit fits or none is worth compiling."""
