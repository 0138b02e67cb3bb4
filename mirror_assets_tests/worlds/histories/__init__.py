"""Long histories of real tables and files: statements, runs, faults and rebuilds in any order."""
