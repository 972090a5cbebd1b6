"""Reports for people: tables, plots and a page in one file, from the folders of runs and experiments."""
