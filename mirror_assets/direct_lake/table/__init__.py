"""A Delta table's files at any version that its log still tells of, removed ones included."""
